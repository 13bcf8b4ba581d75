"""Where clients are, and the one round that they all go through."""
