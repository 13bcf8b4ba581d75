"""Absurd options: every option of every method with values that nobody means. A run of tiny data with one of them has
to end with finite figures, or with an error that a user can mend.
"""

from __future__ import annotations

import json
import math
import random
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import confed
from confed.data.domains import Domains
from confed.data.interactions import Interactions
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.methods.registry import METHODS
from confed.testing import tiny, tiny_domains
from tests.faults.outcomes import Outcome

ROUNDS = 2
WHOLE: list[Any] = [0, -1, 1, 2, 10**9, 2**31 - 1, 2**31, 10**12, 10**18, 10**30, 10**5000, 1.5, math.nan, math.inf]
WHOLE += ["many", "", True, None, [3], {"a": 1}, "9" * 5000]
REAL: list[Any] = [
    0.0,
    -1.0,
    5e-324,
    1e-300,
    1e-30,
    1e-9,
    1.0,
    1e3,
    1e6,
    1e15,
    1e30,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
]
REAL += [10**400, "fast", "", True, None, [0.1], {"a": 1.0}]
CHOICE: list[Any] = ["nonsense", "", 3, None, [], "[red]\x1b[31m"]
SWITCH: list[Any] = [True, False, "perhaps", 2, None, []]
REPEATED = {"local_epochs", "iterations", "alternations"}
"""What these say is done so often: a large number is no mistake, and takes for ever."""
FEW = 100
EXPLOSIVE = {"learning_rate": 1e3}
"""Beside flaws that are reproduced, so that they meet numbers that are not finite."""


@dataclass(frozen=True)
class Case:
    """One method with one absurd option, and what it takes to be heard at all."""

    method: str
    option: str
    value: Any
    beside: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        told = repr(self.value) if not isinstance(self.value, int) or abs(self.value) < 10**40 else "a huge number"
        return f"{self.method} {self.option}={told[:40]}{' and more' * bool(self.beside)}"


def cases(seed: int) -> Iterator[Case]:
    """All of them, in an order that the seed decides."""
    found = list(_all())
    random.Random(seed).shuffle(found)
    return iter(found)


def _all() -> Iterator[Case]:
    for method in METHODS:
        for name, of in METHODS[method].config_class.model_fields.items():
            if name == "reproduction":
                for flaw, value in product(of.annotation.model_fields, SWITCH):
                    yield Case(method, f"{name}.{flaw}", value, EXPLOSIVE)
                continue
            for value in _values(of.annotation):
                if name in REPEATED and isinstance(value, int) and FEW < value < 2**31:
                    continue
                yield Case(method, name, value, _partner(name))


def _partner(option: str) -> dict[str, Any]:
    """Noise and clipping go together."""
    return {{"upload_clip": "upload_noise", "upload_noise": "upload_clip"}[option]: 1.0} if "upload" in option else {}


def _values(annotation: Any) -> list[Any]:
    kinds = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    kind = next(one for one in kinds if one is not type(None))
    if get_origin(kind) is Literal:
        return [*get_args(kind), *CHOICE]
    return {bool: SWITCH, int: WHOLE, float: REAL}[kind]


@cache
def data_for(method: str) -> Interactions | Domains:
    if METHODS[method].domains != "several":
        return tiny.interactions()
    if METHODS[method].most_domains is None:
        return tiny_domains.domains()
    return synthetic_domains(domains=2, users=24, items=60, interactions_per_user=12, groups=3, categories=5, seed=3)


def outcome(case: Case, folder: Path) -> Outcome:
    """What becomes of it; `folder` is the run's, and there is none if it was refused before it began."""
    options = {**case.beside, case.option: case.value}
    try:
        run = confed.run(
            case.method, data_for(case.method), rounds=ROUNDS, options=options, folder=folder, notice=lambda text: None
        )
        json.dumps(run.summary, allow_nan=False)
        return Outcome(held=True, how=f"done: {run!r}")
    except ConfedError as error:
        return Outcome(held=bool(error.message), how=f"refused: {error.message}")
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
