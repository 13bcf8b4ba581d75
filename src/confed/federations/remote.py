"""Sites that are elsewhere: questions and answers go to them as bytes, and what their clients keep stays with them.

`processes` and `ray` say how bytes get there. A site that is lost breaks the round off; once it is there again, all
sites return to what they last wrote and the rounds since are trained again.
"""

from __future__ import annotations

import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from confed.errors import ConfedError, DamagedError, DivergedError, MessageError, UnwritableError
from confed.federations.base import Federation
from confed.federations.frames import Codec, Frame
from confed.federations.site import Site
from confed.seals import Sealed

_QUESTIONS = frozenset({"train", "examine", "each", "partials", "mark", "commit", "restore"})
_ERRORS = {kind.__name__: kind for kind in (ConfedError, DamagedError, MemoryError, MessageError, UnwritableError)}
_END = Frame({"end": True}).to_bytes()


Tell = Callable[[dict[str, Any]], None]
"""Hears of every round: the line of the log."""
MOST_DEATHS = 3
"""Of a site in one run: who dies again and again will not be cured by another start."""


MakeSite = Callable[[bytes], tuple[Site, Codec]]
"""From what a site is told to the site."""


class LostSiteError(Exception):
    """A site does not answer any more."""


class Desk:
    """Where a site answers in bytes. If it could not be made, it says so to whoever asks."""

    def __init__(self, make: MakeSite, part: bytes) -> None:
        self._failed: bytes | None = None
        try:
            self._site, self._codec = make(part)
        except Exception as error:
            self._failed = error_frame(error)

    def answers(self, question: bytes) -> Iterator[bytes]:
        """Any number of answers and an end, or what went wrong."""
        if self._failed is not None:
            yield self._failed
            return
        try:
            name, about = self._codec.asked(Frame.from_bytes(question))
            if name not in _QUESTIONS:
                raise MessageError(f"a site is asked {name!r}: it answers to {', '.join(sorted(_QUESTIONS))}")
            found = getattr(self._site, name)(**about)
            for one in found if name == "each" else [found]:
                yield self._codec.answer(name, one).to_bytes()
            yield _END
        except Exception as error:
            yield error_frame(error)


def error_frame(error: Exception) -> bytes:
    """For the user's process: a mistake that can be mended by its message, a defect of ours with its traceback."""
    if isinstance(error, DivergedError):
        return Frame({"error": DivergedError.__name__, "message": error.text, **_whose(error)}).to_bytes()
    if isinstance(error, ConfedError):
        return Frame({"error": type(error).__name__, "message": error.message}).to_bytes()
    if isinstance(error, MemoryError):  # or one of its kinds
        return Frame({"error": MemoryError.__name__, "message": str(error)}).to_bytes()
    return Frame({"error": "", "message": "".join(traceback.format_exception(error))}).to_bytes()


def _whose(error: DivergedError) -> dict[str, Any]:
    return {"client": error.client, "domain": error.domain}


def raise_error(frame: Frame) -> None:
    """What went wrong elsewhere goes wrong here, if anything did."""
    if "error" in frame.head:
        kind, message = frame.head["error"], frame.head["message"]
        if kind == DivergedError.__name__:
            raise DivergedError(message, frame.head["client"], frame.head["domain"])
        raise _ERRORS.get(kind, ConfedError)(message) if kind else RuntimeError(message)


@dataclass
class _Cost:
    sent: int = 0
    received: int = 0
    waited: float = 0.0


class RemoteFederation(Federation):
    """Holds no client: their part of any state is at their sites."""

    def __init__(self, codecs: Sequence[Codec], held: Sequence[Tensor], ids: Tensor) -> None:
        super().__init__(held, ids)
        self.codecs = codecs
        self._cost = _Cost()

    @abstractmethod
    def _send(self, site: int, question: bytes) -> None:
        """Put a question to a site."""

    @abstractmethod
    def _receive(self, site: int) -> bytes:
        """Its next answer."""

    def _ask(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        for site, told in about.items():
            data = self.codecs[site].question(question, told).to_bytes()
            self._cost.sent += len(data)
            self._send(site, data)
        return self._answers(question, about)

    def _answers(self, question: str, about: Mapping[int, Mapping[str, Any]]) -> Iterator[Any]:
        for site, told in about.items():
            while (data := self._heard(site)) != _END:
                frame = Frame.from_bytes(data)
                raise_error(frame)
                yield self.codecs[site].answered(question, told, frame)

    def _heard(self, site: int) -> bytes:
        began = time.monotonic()
        data = self._receive(site)
        self._cost.waited += time.monotonic() - began
        self._cost.received += len(data)
        return data

    def cost(self) -> dict[str, float]:
        cost, self._cost = self._cost, _Cost()
        return {"sent_bytes": cost.sent, "received_bytes": cost.received, "waited_seconds": cost.waited}

    def state(self) -> dict[str, Tensor]:
        return {}

    def load(self, state: Mapping[str, Tensor]) -> None:
        pass

    def serving_state(self) -> dict[str, Tensor]:
        """The sites keep theirs."""
        list(self._exchange("mark", self._with_push([{}] * len(self.held))))
        return {}

    def commit(self, where: Path) -> tuple[Sealed, ...]:
        about = [{"folder": str(where), "name": site_name(site)} for site in range(len(self.held))]
        written = tuple(self._exchange("commit", self._with_push(about)))
        seen = sum((where / sealed.name).is_file() for sealed in written)
        if seen < len(written):
            raise ConfedError(
                f"{where}: of {len(written)} workers {seen} have written here: all of them must see the run's folder "
                f"under the same path"
            )
        return written

    def restore(self, where: Path, sites: Sequence[Sealed] | None) -> None:
        self._push = None
        if sites is not None and len(sites) != len(self.held):
            raise DamagedError(f"{where}: has parts of {len(sites)} workers, there are {len(self.held)}")
        held = [None] * len(self.held) if sites is None else [asdict(sealed) for sealed in sites]
        list(self._exchange("restore", [{"folder": str(where), "sealed": sealed} for sealed in held]))


def site_name(site: int) -> str:
    """What the file of a site in a checkpoint is called by."""
    return f"site-{site}"
