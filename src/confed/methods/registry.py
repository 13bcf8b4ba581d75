"""Every method by name: ours, and those that other installed packages name as entry points."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from confed.errors import ConfedError, unknown_name
from confed.methods.base import Method
from confed.methods.cofedrec import CoFedRec
from confed.methods.ease import EASE
from confed.methods.etl import ETL, ETLF, ETLFC
from confed.methods.fed3cr import Fed3CR
from confed.methods.fedmf import FedMF
from confed.methods.fedncf import FedNCF
from confed.methods.fedrap import FedRAP
from confed.methods.fppdm import FPPDM, FPPDMPlus
from confed.methods.ials import IALS
from confed.methods.lightgcn import LightGCN
from confed.methods.mf import MF
from confed.methods.neumf import NeuMF
from confed.methods.pfedrec import LocalOnly, PFedRec
from confed.methods.pmlam import PMLAM
from confed.methods.popularity import Popularity
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


GROUP = "confed.methods"
"""The group of entry points: each has the method's name and leads to its class."""


def method_named(name: str) -> Method:
    if name in METHODS:
        return METHODS[name]
    elsewhere = _named_elsewhere()
    if name not in elsewhere:
        raise unknown_name("method", name, [*METHODS, *elsewhere])
    return _loaded(elsewhere[name])


def all_methods() -> tuple[dict[str, Method], list[str]]:
    """Ours and those of other packages; and what is wrong with any of these that cannot be had."""
    found, problems = dict(METHODS), []
    for name, point in _named_elsewhere().items():
        try:
            found[name] = _loaded(point)
        except ConfedError as error:
            problems.append(str(error))
    return found, problems


def _named_elsewhere() -> dict[str, EntryPoint]:
    """A name that we have is ours, whoever else claims it."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in METHODS}


@cache
def _loaded(point: EntryPoint) -> Method:
    """Whatever another package does wrong is said of that package."""
    package = point.dist.name if point.dist else "an unknown package"
    where = f"method {point.name!r} of {package} ({point.value})"
    try:
        method = point.load()()
    except Exception as error:
        raise ConfedError(f"{where} cannot be loaded ({error!r}): mend or uninstall {package}") from error
    if not isinstance(method, Method) or method.name != point.name:
        raise ConfedError(f"{where}: a subclass of confed.methods.base.Method with that name is expected there")
    missing = [name for name in ("title", "citation", "kind", "domains", "config_class") if not hasattr(method, name)]
    if missing:
        raise ConfedError(f"{where}: it says no {' and no '.join(missing)}; mend or uninstall {package}")
    return method
