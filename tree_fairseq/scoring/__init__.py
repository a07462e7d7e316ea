"""Scores of outputs, with significance tests: BLEU, ROUGE, classes, numbers, trees; result files of recipes."""
