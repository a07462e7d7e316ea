"""Trees as data: reading, writing, transforming and drawing them, and their encoding as arrays.

Pure Python and numpy. A *line* of a corpus is a *forest*, the trees of its sentences, and the leaves of the forest are
the tokens of the line.
"""
