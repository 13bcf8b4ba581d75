"""Questions to a site and its answers as bytes, for federations whose sites are elsewhere.

A frame is a head in JSON and any number of messages, each held against its schema when it is read. Nothing else crosses
the line: no code, and nothing that would have to be unpickled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from confed.errors import MessageError
from confed.evaluation.evaluator import PARTS
from confed.federations.site import Trained
from confed.messages import (
    Agreement,
    Download,
    Field,
    PartialSum,
    Push,
    Schema,
    Sums,
    Tally,
    decode,
    encode,
    tally_schema,
)
from confed.seals import Sealed
from confed.server.uploads import Named
from confed.tensors import joined, part_of

_LENGTH = 8
_NUMBERS = Schema("numbers", {"numbers": Field(torch.int64, ("numbers",))})


@dataclass(frozen=True)
class Frame:
    """What is sent at once."""

    head: Mapping[str, Any]
    messages: Sequence[bytes] = ()

    def to_bytes(self) -> bytes:
        parts = [json.dumps(self.head).encode(), *self.messages]
        return b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Frame:
        parts, start = [], 0
        while start < len(data):
            end = start + _LENGTH + int.from_bytes(data[start : start + _LENGTH], "little")
            if end > len(data):
                raise MessageError(f"a frame of {len(data):,} bytes that ends in the middle of a message")
            parts.append(data[start + _LENGTH : end])
            start = end
        try:
            head = json.loads(parts[0])
        except (IndexError, ValueError, RecursionError):
            raise MessageError(f"a frame of {len(data):,} bytes without a head") from None
        if not isinstance(head, dict):
            raise MessageError("a frame whose head is no object")
        return cls(head, parts[1:])


@dataclass(frozen=True)
class Codec:
    """Of the line to one site: what was agreed on, how many clients it has, which rankings its domains have."""

    agreement: Agreement
    clients: int
    rankings: Mapping[str, Collection[str]]

    def question(self, name: str, about: Mapping[str, Any]) -> Frame:
        """What is no tensor goes into the head."""
        head: dict[str, Any] = {"ask": name, "plain": {}, "tensors": {}}
        messages: list[bytes] = []
        for key, value in about.items():
            found = _messages(value)
            if found is None:
                head["plain"][key] = value
            else:
                head["tensors"][key] = len(found)
                messages += found
        return Frame(head, messages)

    def asked(self, frame: Frame) -> tuple[str, dict[str, Any]]:
        """The inverse of `question`."""
        with _refused("a question"):
            name, about = frame.head["ask"], dict(frame.head["plain"])
            waiting = list(frame.messages)
            for key, count in frame.head["tensors"].items():
                found = [self._read(key, waiting.pop(0)) for _ in range(count)]
                about[key] = found if key == "groups" else found[0]
            if waiting or not isinstance(name, str):
                raise ValueError(f"{len(waiting)} messages that nobody spoke of")
        return name, about

    def _read(self, key: str, data: bytes) -> Any:
        if key == "download":
            return Download.from_bytes(data, self.agreement.download(self.clients))
        if key == "push":
            return Push.from_bytes(data, self.agreement.push(self.clients))
        return decode(data, _NUMBERS)["numbers"]

    def answer(self, name: str, found: Any) -> Frame:
        if name == "train":
            head = {"loss": found.loss, "notes": found.notes, "domains": list(found.tallies)}
            return Frame(head, [found.sums.to_bytes(), *(tally.to_bytes() for tally in found.tallies.values())])
        if name == "examine":
            return Frame({"domains": list(found)}, [tally.to_bytes() for tally in found.values()])
        if name == "each":
            clients, sent = found
            return Frame({}, [encode("each", {"clients": clients} | joined({"sent": sent}))])
        if name == "partials":
            return Frame({}, [encode("partials", _flat(of)) for of in found])
        return Frame(asdict(found) if name == "commit" else {})

    def answered(self, name: str, about: Mapping[str, Any], frame: Frame) -> Any:
        """The inverse of `answer`, of a question `about` this."""
        with _refused(f"the answer to {name!r}"):
            if name == "train":
                return self._trained(frame.head, frame.messages)
            if name == "examine":
                return self._tallies(frame.head, frame.messages)
            if name == "each":
                (message,) = frame.messages
                return self._each(message, about)
            if name == "partials":
                asked = range(len(about["groups"]))
                return [self._partials(of, about["names"]) for _, of in zip(asked, frame.messages, strict=True)]
            if name == "commit":
                return self._written(frame.head, about["name"])
        return None

    def _written(self, head: Mapping[str, Any], name: str) -> Sealed:
        sealed = Sealed(**head)
        if not re.fullmatch(rf"{re.escape(name)}-[0-9a-f]+\.safetensors", sealed.name):
            raise ValueError(f"a file called {sealed.name!r}, which is not {name}'s")
        return sealed

    def _trained(self, head: Mapping[str, Any], messages: Sequence[bytes]) -> Trained:
        sums = Sums.from_bytes(messages[0], self.agreement.sums())
        loss, notes = head["loss"], head["notes"]
        if not isinstance(loss, float | int) or not isinstance(notes, dict):
            raise ValueError("the loss is a number, and notes have names")
        return Trained(sums, loss, self._tallies(head, messages[1:]), notes)

    def _tallies(self, head: Mapping[str, Any], messages: Sequence[bytes]) -> dict[str, Tally]:
        return {
            domain: Tally.from_bytes(data, tally_schema(self.rankings[domain], PARTS))
            for domain, data in zip(head["domains"], messages, strict=True)
        }

    def _each(self, message: bytes, about: Mapping[str, Any]) -> tuple[Tensor, Named]:
        agreed = self.agreement
        fields = {"clients": Field(torch.int64, ("clients",), distinct=True)}
        for name, of in agreed.each(about["names"], about["items"]).items():
            fields[f"sent/{name}"] = of
        found = decode(message, Schema("each", fields, {"items": agreed.items, "tokens": agreed.tokens}))
        if not bool(torch.isin(found["clients"], about["where"]).all()):
            raise ValueError("an answer about somebody who was not asked")
        return found["clients"], part_of(found, "sent")

    def _partials(self, data: bytes, names: Sequence[str]) -> dict[str, PartialSum]:
        fields = {
            f"{name}/{part}": of
            for name in names
            for part, of in self.agreement.partial(name, self.agreement.plan[name]).items()
        }
        tensors = decode(data, Schema("partials", fields))
        return {name: PartialSum(**part_of(tensors, name)) for name in names}


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Whatever does not fit together in a frame is a `MessageError`."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise MessageError(f"{what} makes no sense ({error!r})") from None


def _messages(value: Any) -> list[bytes] | None:
    """The bytes of what is a message, a tensor of whole numbers or several of them; None of all else."""
    if isinstance(value, Download | Push):
        return [value.to_bytes()]
    if isinstance(value, Tensor):
        return [encode("numbers", {"numbers": value})]
    if isinstance(value, list | tuple) and value and isinstance(value[0], Tensor):
        return [encode("numbers", {"numbers": one}) for one in value]
    return None


def _flat(partials: Mapping[str, PartialSum]) -> dict[str, Tensor]:
    return joined({name: part.tensors() for name, part in partials.items()})
