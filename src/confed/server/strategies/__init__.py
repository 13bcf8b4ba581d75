"""Server strategies, one file each."""

from confed.server.strategies.active import ActiveAverage
from confed.server.strategies.adam import ServerAdam
from confed.server.strategies.average import Average
from confed.server.strategies.barycentre import Barycentre
from confed.server.strategies.base import AnyStrategy, Strategy
from confed.server.strategies.categories import Categorised
from confed.server.strategies.clustered import GroupMeans
from confed.server.strategies.cocluster import CoCluster
from confed.server.strategies.expanded import Expanded
from confed.server.strategies.generated import Generated
from confed.server.strategies.graph import GraphMean, Neighbourhood

__all__ = [
    "ActiveAverage",
    "AnyStrategy",
    "Average",
    "Barycentre",
    "Categorised",
    "CoCluster",
    "Expanded",
    "Generated",
    "GraphMean",
    "GroupMeans",
    "Neighbourhood",
    "ServerAdam",
    "Strategy",
]
