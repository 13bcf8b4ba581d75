"""Files to interactions to splits; the registry of known datasets."""

from confed.data.interactions import Interactions
from confed.data.registry import load_dataset
from confed.data.synthetic import synthetic

__all__ = ["Interactions", "load_dataset", "synthetic"]
