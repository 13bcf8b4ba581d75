"""What the hyper-parameters of every method and model are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class MethodConfig(BaseModel):
    """Hyper-parameters. Subclasses add theirs; every field carries its meaning below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
