"""What happens to an upload between client and strategy: one chain of filters, for people and companies.

A filter has two halves. The client's half changes what leaves a client; the server's half gets the sums of what
arrived, and undoes or completes what has to be (a quantiser would scale back, masks would cancel). Both sides have the
same chain, by the method's options. What a strategy cannot bear is refused before anything starts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from confed.errors import ConfedError
from confed.messages import Agreement, Sums, Upload

Bases = Mapping[str, Tensor]
"""What clients received, by name, whole."""


class Filter(ABC):
    """One member of the chain."""

    name: ClassVar[str]
    silences: ClassVar[frozenset[str]] = frozenset()
    """Facts that are not sent beside it, because they would say something of what it hides."""

    def objection(self, agreement: Agreement) -> str | None:
        """Why it cannot be used with these messages; None if it can."""
        return None

    @abstractmethod
    def leaving(
        self, upload: Upload, agreed: Agreement, bases: Mapping[str, Tensor], key: tuple[object, ...]
    ) -> Upload:
        """The client's half: what one or several clients send, who received `bases`. Draws are functions of `key` and
        the client's id.
        """

    def arrived(self, sums: Sums) -> Sums:
        """The server's half."""
        return sums

    def number_bytes(self) -> int | None:
        """Of a number that is averaged, where it travels as something longer than itself."""
        return None

    def note(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        """What it does to an upload, for the record of a simulation."""
        return {}


@dataclass(frozen=True)
class Chain:
    """Filters in the order in which an upload passes them; the server's halves come in the opposite order."""

    filters: tuple[Filter, ...] = ()

    @property
    def silences(self) -> frozenset[str]:
        return frozenset().union(*(one.silences for one in self.filters))

    @property
    def blurs(self) -> bool:
        """Whether `upload_noise` is on."""
        return any(one.name == "noise" for one in self.filters)

    def check(self, agreement: Agreement, method: str) -> None:
        for one in self.filters:
            objection = one.objection(agreement)
            if objection:
                raise ConfedError(f"{method} cannot bear {one.name} on its uploads: {objection}")

    def leaving(self, upload: Upload, agreed: Agreement, bases: Bases, *key: object) -> Upload:
        for one in self.filters:
            upload = one.leaving(upload, agreed, bases, key)
        return upload

    def arrived(self, sums: Sums) -> Sums:
        for one in reversed(self.filters):
            sums = one.arrived(sums)
        return sums

    def longer(self, agreed: Agreement) -> int:
        """Bytes that a message with all that is averaged is longer than its numbers are."""
        each = max((one.number_bytes() or 0 for one in self.filters), default=0)
        numbers = sum(math.prod(agreed.shapes[name]) for name in agreed.plan)
        return numbers * max(each - agreed.dtype.itemsize, 0)

    def notes(self, upload: Upload, agreed: Agreement) -> dict[str, Any]:
        """By filter."""
        return {one.name: one.note(upload, agreed) for one in self.filters}


NO_FILTERS = Chain()
