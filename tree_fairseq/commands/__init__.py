"""Commands over data-bin folders and checkpoints: check, export, annotate, average, induce."""
