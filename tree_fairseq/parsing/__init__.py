"""From text to trees: parsers, their cache, and the parsing of whole corpora.

Only ``stanza_parser`` imports Stanza, and nothing else here imports torch.
"""
