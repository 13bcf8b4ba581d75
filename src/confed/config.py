"""What the hyper-parameters of every method and model are made of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

_MOST, _LARGEST = 2**31 - 1, 1e15
"""Of whole numbers and of others: a product of two options and a count is still a number of 64, or of 32, bits."""


class MethodConfig(BaseModel):
    """Hyper-parameters. Subclasses add theirs; every field carries its meaning below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _in_proportion(cls, value: Any) -> Any:
        """Whatever is larger is a slip of the pen."""
        largest = _LARGEST if isinstance(value, float) else _MOST
        if isinstance(value, int | float) and abs(value) > largest:
            raise ValueError(f"should be at most {largest:,.0f}")
        return value
