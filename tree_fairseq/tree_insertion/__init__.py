"""Insertion-based tree decoding (Lukovnikov & Fischer 2021) and its baselines.

``fairseq-generate`` prints ``I-<id><TAB>STEPS`` after each hypothesis, the number of decoding steps. Marks follow the
number of a hypothesis that is not a complete tree: ``I-<id><TAB>STEPS partial invalid``.
"""

PARTIAL = "partial"  # a hypothesis that reached a limit of steps or nodes
INVALID = "invalid"  # a hypothesis that is not one tree, even if its text can be read as a tree
