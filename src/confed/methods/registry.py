"""Every method by name."""

from __future__ import annotations

from confed.central.ease import EASE
from confed.central.ials import IALS
from confed.central.lightgcn import LightGCN
from confed.central.mf import MF
from confed.central.neumf import NeuMF
from confed.central.pmlam import PMLAM
from confed.central.popularity import Popularity
from confed.errors import unknown_name
from confed.methods.base import Method
from confed.methods.cofedrec import CoFedRec
from confed.methods.etl import ETL, ETLF, ETLFC
from confed.methods.fed3cr import Fed3CR
from confed.methods.fedmf import FedMF
from confed.methods.fedncf import FedNCF
from confed.methods.fedrap import FedRAP
from confed.methods.fppdm import FPPDM, FPPDMPlus
from confed.methods.pfedrec import LocalOnly, PFedRec
from confed.methods.scalar import ScalarControl
from confed.methods.silo_tables import FedGNNSilo, FedMFSilo

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        CoFedRec(),
        Fed3CR(),
        PFedRec(),
        FedMF(),
        FedNCF(),
        FedRAP(),
        FPPDMPlus(),
        FPPDM(),
        ETLFC(),
        ETLF(),
        FedGNNSilo(),
        FedMFSilo(),
        Popularity(),
        MF(),
        NeuMF(),
        LightGCN(),
        PMLAM(),
        EASE(),
        IALS(),
        ETL(),
        ScalarControl(),
        LocalOnly(),
    )
}


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
