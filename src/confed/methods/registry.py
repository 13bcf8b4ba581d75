"""Every method by name: ours, and those that other installed packages name as entry points.

A method is loaded when somebody asks for it. That takes seconds, most of them for torch; a list of names, TAB and a
typo must not take any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from confed.errors import ConfedError, unknown_name

if TYPE_CHECKING:
    from confed.methods.base import Method

_CLASSES = {
    "cofedrec": "cofedrec.CoFedRec",
    "fed3cr": "fed3cr.Fed3CR",
    "pfedrec": "pfedrec.PFedRec",
    "fedmf": "fedmf.FedMF",
    "fedncf": "fedncf.FedNCF",
    "fedrap": "fedrap.FedRAP",
    "fedrecon": "fedrecon.FedRecon",
    "federank": "federank.FedeRank",
    "gpfedrec": "gpfedrec.GPFedRec",
    "fedfast": "fedfast.FedFast",
    "perfedrec": "perfedrec.PerFedRec",
    "fedpergnn": "fedpergnn.FedPerGNN",
    "metamf": "metamf.MetaMF",
    "fcf": "fcf.FCF",
    "fppdm++": "fppdm.FPPDMPlus",
    "fppdm": "fppdm.FPPDM",
    "etl-fc": "etl.ETLFC",
    "etl-f": "etl.ETLF",
    "fedgnn-silo": "silo_tables.FedGNNSilo",
    "fedmf-silo": "silo_tables.FedMFSilo",
    "popularity": "popularity.Popularity",
    "mf": "mf.MF",
    "neumf": "neumf.NeuMF",
    "lightgcn": "lightgcn.LightGCN",
    "pmlam": "pmlam.PMLAM",
    "ease": "ease.EASE",
    "ials": "ials.IALS",
    "etl": "etl.ETL",
    "doml": "doml.DOML",
    "pricdr": "pricdr.PriCDR",
    "cdrib": "cdrib.CDRIB",
    "msdcr": "msdcr.MSDCR",
    "scalar": "scalar.ScalarControl",
    "local-only": "pfedrec.LocalOnly",
}
"""The class of each, by the module of this room that has it."""


@cache
def _ours(name: str) -> Method:
    module, _, kind = _CLASSES[name].partition(".")
    method: Method = getattr(import_module(f"confed.methods.{module}"), kind)()
    assert method.name == name, f"{_CLASSES[name]} calls itself {method.name}"
    return method


class _Ours(Mapping[str, "Method"]):
    """Knows all names, and loads what is looked up."""

    def __getitem__(self, name: str) -> Method:
        if name not in _CLASSES:
            raise KeyError(name)
        return _ours(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES


METHODS: Mapping[str, Method] = _Ours()

GROUP = "confed.methods"
"""The group of entry points: each has the method's name and leads to its class."""


def method_named(name: str) -> Method:
    require_method(name)
    return METHODS[name] if name in METHODS else _loaded(_named_elsewhere()[name])


def require_method(name: str) -> None:
    """Raise if there is none of that name; loads nothing."""
    if name not in METHODS and name not in _named_elsewhere():
        raise unknown_name("method", name, method_names())


def method_names() -> list[str]:
    """Ours and those of other packages; loads nothing."""
    return [*METHODS, *_named_elsewhere()]


def all_methods() -> tuple[dict[str, Method], list[str]]:
    """Ours and those of other packages; and what is wrong with any of these that cannot be had."""
    elsewhere, problems = methods_elsewhere()
    return {**METHODS, **elsewhere}, problems


def methods_elsewhere() -> tuple[dict[str, Method], list[str]]:
    """The part of it that other packages bring."""
    found, problems = {}, []
    for name, point in _named_elsewhere().items():
        try:
            found[name] = _loaded(point)
        except ConfedError as error:
            problems.append(error.message)
    return found, problems


def _named_elsewhere() -> dict[str, EntryPoint]:
    """A name that we have is ours, whoever else claims it."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in METHODS}


@cache
def _loaded(point: EntryPoint) -> Method:
    """Whatever another package does wrong is said of that package."""
    from confed.methods.base import Method  # noqa: PLC0415 - loads torch

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
