"""Scoring of outputs: BLEU, accuracy and validity of trees, significance, attention on nodes, result files of recipes."""
