"""Pictures: trees, attention, positions and results as SVG."""
