"""Compiled loops, for the few places where a batched operation moves far more memory than the arithmetic needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code on first use, kept beside the source like a .pyc file; other threads run meanwhile.

    Sums may be reordered, so that they are vectorised, and multiplications fused; NaN and infinity keep their meaning.
    """
    make = numba.njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
    return cast(Function, make(function))
