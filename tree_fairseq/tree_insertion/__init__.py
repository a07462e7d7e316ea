"""Insertion-based tree decoding (Lukovnikov & Fischer 2021) and its baselines."""
