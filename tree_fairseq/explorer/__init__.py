"""Records of what models do with sentences, and the page and the server that show them."""

from pathlib import Path

DEMO = Path(__file__).parent / "demo"
"""The folder of a model that comes with the package, as ``tree-fairseq release`` wrote it; and of others."""
