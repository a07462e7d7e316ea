"""Tree-Transformer with hierarchical accumulation (Nguyen et al. 2020)."""
