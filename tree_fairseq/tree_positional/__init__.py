"""Tree positions and structural search (Shiv & Quirk 2019), and the tree-to-tree LSTM (Chen et al. 2018)."""
