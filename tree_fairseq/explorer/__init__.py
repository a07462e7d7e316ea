"""Records of what models do with sentences, and the page and the server that show them."""
