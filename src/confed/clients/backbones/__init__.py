"""What a client holds and how it scores an item, one file a family."""

from confed.clients.backbones.additive import Additive
from confed.clients.backbones.base import Backbone, Bilinear, ParamSpec, Renewal
from confed.clients.backbones.biased import BiasedDot, OffsetDot
from confed.clients.backbones.blended import Blended
from confed.clients.backbones.dot import Dot
from confed.clients.backbones.dual import AdaptiveTransfer, DualTable, LearnedTransfer, NoTransfer, Transfer
from confed.clients.backbones.linear import LinearHead, Scalar
from confed.clients.backbones.neumf import NeuMF
from confed.clients.backbones.perceptron import Perceptron
from confed.clients.backbones.user_graph import UserGraph

__all__ = [
    "AdaptiveTransfer",
    "Additive",
    "Backbone",
    "BiasedDot",
    "Bilinear",
    "Blended",
    "Dot",
    "DualTable",
    "LearnedTransfer",
    "LinearHead",
    "NeuMF",
    "NoTransfer",
    "OffsetDot",
    "ParamSpec",
    "Perceptron",
    "Renewal",
    "Scalar",
    "Transfer",
    "UserGraph",
]
