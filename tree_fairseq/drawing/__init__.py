"""Pictures of trees, attention, tree positions and results, as SVG and as text."""
