"""Files to interactions to splits; the registry of known datasets."""
