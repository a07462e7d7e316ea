"""Insertion-based tree decoding (Lukovnikov & Fischer 2021) and its baselines.

``fairseq-generate`` prints a line ``U-<id><TAB>WORD ...`` after each hypothesis that is not a complete tree.
"""

UNFINISHED = "U-"  # begins such a line
PARTIAL = "partial"  # a hypothesis that reached a limit of steps or nodes
INVALID = "invalid"  # a hypothesis that is not one tree, even if its text can be read as a tree
