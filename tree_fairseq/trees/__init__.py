"""Trees as data: reading, writing and transforming them, and encoding them as arrays and symbols.

Pure Python and numpy. A *line* of a corpus holds a *forest*, one tree for each sentence, and the leaves of the forest
are the tokens of the line.
"""
