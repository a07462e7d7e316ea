"""From text to trees: parsers and their registry, the cache of parses, and the parsing of whole corpora.

Only ``stanza_parser`` imports Stanza and torch, and only when it parses. Nothing here imports fairseq.
"""
