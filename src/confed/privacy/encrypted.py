"""What homomorphic encryption does to messages, without doing it: numbers in fixed point, and ciphertexts' sizes.

FedMF's users share a private key, and its server adds up ciphertexts (Paillier). The sums that it gets are of numbers
rounded to a precision, which is simulated here; that nobody but users can read them is not. Tables are ciphertexts on
their way down as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from confed.messages import Agreement, Sent, TableRows, Upload, dense, gather_rows
from confed.privacy.filters import Filter


@dataclass(frozen=True)
class SimulatedPaillier(Filter):
    """Changes become multiples of `precision`; every number that is averaged takes twice the `key_bits`."""

    precision: float = 1e-5
    key_bits: int = 1024
    name: ClassVar[str] = "encryption"

    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        sent = {name: self._rounded(upload.tensors[name], bases[name]) for name in agreed.plan}
        return replace(upload, tensors={**upload.tensors, **sent})

    def _rounded(self, sent: Sent, base: Tensor) -> Sent:
        if isinstance(sent, TableRows):
            return replace(sent, rows=self._steps(sent.rows, gather_rows(sent.base, sent.base_of, sent.index)))
        return self._steps(dense(sent), base)

    def _steps(self, after: Tensor, before: Tensor) -> Tensor:
        moved = (after.double() - before.double()) / self.precision
        return (before.double() + self.precision * torch.round(moved)).to(after.dtype)

    def number_bytes(self) -> int:
        return 2 * self.key_bits // 8

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        return {"simulated": True, "precision": self.precision, "bytes_per_number": self.number_bytes()}
