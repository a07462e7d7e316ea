"""A synchronous English-German grammar: each derivation gives an English tree and a German sentence.

``python -m preprocess.english_german --out DIR`` writes a corpus.
"""
