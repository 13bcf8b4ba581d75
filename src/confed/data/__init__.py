"""Files to interactions to splits; the registry of known datasets."""

from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.registry import load, load_dataset, load_domains
from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains

__all__ = ["Domains", "Interactions", "load", "load_dataset", "load_domains", "synthetic", "synthetic_domains"]
