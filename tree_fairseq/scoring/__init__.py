"""Scoring of outputs: BLEU with signatures and significance, accuracy and validity of trees, attention on nodes, result files."""
