"""From text to trees. Only ``stanza_parser`` imports Stanza and torch, when it parses; nothing here imports fairseq."""
