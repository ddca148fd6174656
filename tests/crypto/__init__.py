"""Keys, notes and trees: what signatures are made of."""
