"""Server strategies, one file each."""

from confed.server.strategies.adam import ServerAdam
from confed.server.strategies.average import Average
from confed.server.strategies.barycentre import Barycentre
from confed.server.strategies.base import AnyStrategy, Strategy
from confed.server.strategies.categories import Categorised
from confed.server.strategies.cocluster import CoCluster

__all__ = ["AnyStrategy", "Average", "Barycentre", "Categorised", "CoCluster", "ServerAdam", "Strategy"]
