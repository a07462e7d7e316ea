"""Task bases, their sides, data sets of pairs, and batches."""

INVALID = "invalid"
"""Marks a hypothesis that is not a tree, even if its text can be read as one, or that is not a program."""
