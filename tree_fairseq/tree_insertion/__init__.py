"""Insertion-based tree decoding (Lukovnikov & Fischer 2021) and its baselines.

``fairseq-generate`` prints ``I-<id><TAB>STEPS`` after each hypothesis, the number of decoding steps. Marks follow the
number of a hypothesis that is not a complete tree, or that the target's programming language does not read, such as
``I-<id><TAB>STEPS partial invalid``, or that was made a program.
"""

PARTIAL = "partial"  # a hypothesis that reached a limit of steps or nodes
NEAREST = "nearest"  # the nearest program, with --grammar language, to an output that is none
