"""Preprocessing with trees, as an extension of ``fairseq-preprocess``."""
