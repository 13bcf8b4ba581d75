"""What leaves a company, and how it is protected on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from confed.models.distributions import SMALLEST
from confed.models.silo import Rows
from confed.privacy.gaussian import GaussianMechanism


@dataclass(frozen=True)
class Exchange:
    """The names of the rows that travel, and the noise on them, if any."""

    names: tuple[str, ...]
    mechanism: GaussianMechanism | None = None

    def protect(self, rows: Rows, *key: object) -> Rows:
        """The declared rows as they leave. A person's rows are clipped and blurred as one."""
        declared = {name: rows[name] for name in self.names}
        if not self.mechanism:
            return declared
        widths = [tensor.shape[1] for tensor in declared.values()]
        blurred = self.mechanism.protect(torch.cat(list(declared.values()), dim=1), "upload noise", *key)
        parts = dict(zip(declared, torch.split(blurred, widths, dim=1), strict=True))
        if "deviation" in parts:
            parts["deviation"] = parts["deviation"].clamp_min(SMALLEST)  # what noise made negative is no deviation
        return parts

    def note(self, shared: Mapping[str, Rows]) -> dict[str, Any]:
        """What the noise did to every domain's rows: a simulation looks at what the server would not see."""
        if not self.mechanism:
            return {}
        together = {name: torch.cat([rows[part] for part in self.names], dim=1) for name, rows in shared.items()}
        return {"noise": {name: self.mechanism.note(rows) for name, rows in together.items()}}
