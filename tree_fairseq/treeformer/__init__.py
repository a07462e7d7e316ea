"""Treeformer: a CKY-style chart over any encoder (Patel & Flanigan 2023)."""
