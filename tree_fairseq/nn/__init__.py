"""Layers and base classes that two methods or more use, the registry of encoders, and one page of shape letters.

Docstrings write shapes with these letters. A letter means the same everywhere in the package:

======  =========================================================================================
letter  meaning
======  =========================================================================================
B       sentences (or documents) in a batch
R       rows of a search, one for each hypothesis (B * K or fewer); rows of packed sentences
K       beam size
N       source leaves: tokens or symbols of the source, EOS and padding included
M       tree nodes: constituents of the source, nodes of a partial or target tree; padding included
S       memory positions: N leaves, then M nodes, or the cells of a chart
T       target length: tokens of a target or of a partial sequence, padding included
H       attention heads
D       width of the model's states; D / H that of one head
E       width of embeddings or other inputs where it is not D
V       vocabulary: symbols of a dictionary
C       classes of a classifier
L       levels of a tree, or the length of a branch or phrase
Z       insertion slots of all rows together
Q       entries of a flat list over a whole batch, such as those of a sparse matrix or of a chart
n, k    branches of a symbol (its arity), and levels that a tree position remembers
======  =========================================================================================

A lower-case ``i``, ``j`` or ``t`` is one index of such a dimension. Other letters are explained where they occur.
"""
