"""Task bases, their sides, data sets of pairs, and batches."""
