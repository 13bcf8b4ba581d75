"""Server strategies, one file each."""

from confed.server.strategies.average import Average
from confed.server.strategies.base import Strategy

__all__ = ["Average", "Strategy"]
