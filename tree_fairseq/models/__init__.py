"""Registered models, one a file, each with a few named architectures."""
