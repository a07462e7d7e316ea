"""Every change that the plugin makes to fairseq and torch."""
