"""The Gaussian mechanism: what is sent is clipped to a length and gets noise.

A company's rows about a person are clipped and blurred as one row. Noise of deviation z·C on a row of length at most C
hides that row from whoever sees the upload: rows in a ball of radius C differ by at most 2C, so the row is
(ε, δ)-private; `accounting` has the exact ε of one upload and of all rounds. This speaks of one person's row in one
company's upload. It does not speak of a person's interactions, which shape other people's rows as well; and companies
that send rows of the same person add up.

Of people it is the change of all that a client sends, tables and networks together, that is clipped and blurred as one:
the same ε, of one client's whole upload.

In a simulation the noise is a function of the seed; a deployment has to draw it in secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from confed.messages import Agreement, Upload, dense
from confed.messages.agreement import FACTS
from confed.privacy.accounting import CLIENT, ROW, require_accounting
from confed.privacy.filters import Bases, Filter
from confed.random import keyed, standard_normal


@dataclass(frozen=True)
class Gaussian(Filter):
    """Clips to `clip`, then adds noise of deviation `multiplier` · `clip` to every number."""

    clip: float
    multiplier: float
    least: Mapping[str, float] = field(default_factory=dict)
    """By name, the smallest number that makes sense: what noise takes below it is raised again."""
    name: ClassVar[str] = "noise"
    silences: ClassVar[frozenset[str]] = frozenset({"loss"})

    @property
    def deviation(self) -> float:
        return self.multiplier * self.clip

    def blurred(self, rows: Tensor, *key: object) -> Tensor:
        """Rows (n, d) as they may leave; the noise is a function of `key`."""
        noise = standard_normal(rows, keyed(*key))
        length = rows.norm(dim=1, keepdim=True)
        clipped: Tensor = rows * (self.clip / length.clamp_min(self.clip))
        return clipped + self.deviation * noise

    def objection(self, agreement: Agreement) -> str | None:
        require_accounting()
        kept = sorted(agreement.plan.keys() & agreement.kept.keys())
        if kept:
            return f"clients keep {', '.join(kept)} and send them whole, so there is no change to clip"
        alone = sorted(agreement.uploads - agreement.plan.keys() - FACTS.keys())
        if alone:
            return f"the server looks at every client's {', '.join(alone)}"
        if agreement.several:
            return f"its clients begin with different {', '.join(sorted(agreement.several))}"
        if "held" in agreement.uploads:
            return "its clients say which rows they trained, which noise on the rows would not hide"
        if "samples" in agreement.uploads:
            return "its clients say how many rows they have, which gets no noise"
        return None

    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        if not agreed.plan:
            return upload
        if upload.rows is not None:
            sent = self._rows(upload, agreed, key)
        else:
            sent = self._changes(upload, agreed, bases, key)
        return Upload(upload.clients, {**upload.tensors, **sent}, upload.rows)

    def _rows(self, upload: Upload, agreed: Agreement, key: tuple[object, ...]) -> dict[str, Tensor]:
        """Of a company: every person's rows as one."""
        widths = [agreed.shapes[name][1] for name in agreed.plan]
        parts = torch.split(self.blurred(_side_by_side(upload, agreed), "upload noise", *key), widths, dim=1)
        sent = dict(zip(agreed.plan, parts, strict=True))
        return {name: (t.clamp_min(self.least[name]) if name in self.least else t)[None] for name, t in sent.items()}

    def _changes(self, upload: Upload, agreed: Agreement, bases: Bases, key: tuple[object, ...]) -> dict[str, Tensor]:
        """Of people: every client's changes as one vector, with noise of its own."""
        before = torch.cat([bases[name].flatten() for name in agreed.plan])
        after = torch.cat([dense(upload.tensors[name]).flatten(1) for name in agreed.plan], dim=1)
        for place, client in enumerate(upload.clients.tolist()):
            after[place] = before + self.blurred((after[place] - before)[None], "upload noise", *key, client)[0]
        parts = torch.split(after, [bases[name].numel() for name in agreed.plan], dim=1)
        return {name: of.view(len(upload), *bases[name].shape) for name, of in zip(agreed.plan, parts, strict=True)}

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        said = {"clip": self.clip, "noise_deviation": self.deviation}
        if upload.rows is None:
            return {**said, "unit": CLIENT}
        length = _side_by_side(upload, agreed).norm(dim=1)
        return {
            **said,
            "unit": ROW,
            "mean_length": float(length.mean()),
            "clipped_share": float((length > self.clip).double().mean()),
        }


def _side_by_side(upload: Upload, agreed: Agreement) -> Tensor:
    return torch.cat([upload.tensor(name)[0] for name in agreed.plan], dim=1)
