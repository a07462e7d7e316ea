"""Scoring of translations: BLEU with signatures and significance, attention on tree nodes, result files of recipes."""
