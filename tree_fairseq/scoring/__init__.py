"""Scores of outputs, with significance tests: BLEU, ROUGE, classes, numbers, generated trees; result files of
recipes.
"""
