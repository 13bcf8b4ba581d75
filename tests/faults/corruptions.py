"""Corruptions: a file of a run folder is changed, cut, emptied, lost, or comes from another run. Whoever reads the
folder has to get what was written, or a refusal that names the file.
"""

from __future__ import annotations

import random
import re
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import confed
from confed.data.synthetic import synthetic
from confed.errors import ConfedError
from tests.faults.outcomes import Outcome
from tests.outcome import difference
from tests.outcome import outcome as outcome_of_run

ROUNDS, MORE = 3, 4
Change = Callable[[bytes, random.Random], bytes | None]
"""The bytes of a file as they are found later; None if it is lost."""


def _flip(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]


def _digit(data: bytes, rng: random.Random) -> bytes:
    """Another digit in place of one: what a text says is as well-formed as before."""
    places = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
    place = rng.choice(places) if places else 0
    return data[:place] + str(rng.randrange(10)).encode() + data[place + 1 :]


def _number(data: bytes, rng: random.Random) -> bytes:
    """Another whole number where a line says just one, as settings do."""
    found = list(re.finditer(rb"(?m)^\W*\w+\W+ (\d+),?$", data))
    if not found:
        return _digit(data, rng)
    start, end = rng.choice(found).span(1)
    return data[:start] + str(int(data[start:end]) + 1).encode() + data[end:]


def _without_a_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:place] + lines[place + 1 :]) if (place := rng.randrange(len(lines))) < len(lines) else data


def _with_a_line_twice(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    return b"".join(lines[: place + 1] + lines[place:])


def _overwritten(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    junk = rng.randbytes(min(rng.randrange(1, 64), len(data) - place))
    return data[:place] + junk + data[place + len(junk) :]


CHANGES: dict[str, Change] = {
    "a bit": _flip,
    "a digit": _digit,
    "a number": _number,
    "some bytes": _overwritten,
    "cut": lambda data, rng: data[: rng.randrange(len(data))],
    "longer": lambda data, rng: data + rng.randbytes(rng.randrange(1, 100)),
    "zeros": lambda data, rng: bytes(len(data)),
    "empty": lambda data, rng: b"",
    "a line less": _without_a_line,
    "a line twice": _with_a_line_twice,
    "lost": lambda data, rng: None,
}
OTHERS = ("another seed's", "an earlier round's")
"""Beside these changes, a file may be that of another run, or of the same one some rounds ago."""


@dataclass(frozen=True)
class Case:
    file: str
    """By its name in the folder; a file of tensors by what it begins with."""
    change: str
    seed: int
    finished: bool

    @property
    def name(self) -> str:
        return f"{self.file}: {self.change} ({'finished' if self.finished else 'broken off'}, {self.seed})"


class Shelf:
    """Runs to be corrupted: a finished one, one that was broken off, another seed's, and how they should go on."""

    def __init__(self, where: Path, method: str = "fedmf") -> None:
        self.where, self.method = where, method
        data = synthetic(users=30, items=50, interactions_per_user=10, seed=7)
        self.data = replace(data, titles={item: f"the title of item {item}" for item in data.items})
        self._train("finished", ROUNDS)
        self._train("another", ROUNDS, seed=1)
        self._train("broken", ROUNDS, until=2)
        self._train("unbroken", MORE)
        self.answers = answers(where / "finished")

    def _train(self, name: str, rounds: int, *, seed: int = 0, until: int | None = None) -> None:
        options = {"dim": 4, "batch_size": 32}
        said: dict[str, Any] = {"rounds": rounds, "seed": seed, "options": options, "checkpoint_seconds": 0}
        with suppress(_StopError):
            confed.run(self.method, self.data, folder=self.where / name, listener=_stopping(until), **said)

    def files(self, *, finished: bool) -> list[str]:
        folder = self.where / ("finished" if finished else "broken")
        found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return sorted(str(path.relative_to(folder)).partition("-")[0] for path in found)

    def other(self, case: Case) -> Path:
        if case.change == OTHERS[0]:
            return self.where / "another"
        return self.where / ("broken" if case.finished else "finished")


class _StopError(Exception):
    pass


def _stopping(until: int | None) -> Callable[[Any, Any], None]:
    def heard(line: Any, settings: Any) -> None:
        if line["round"] == until:
            raise _StopError

    return heard


def cases(seed: int, shelf: Shelf, each: int = 3) -> Iterator[Case]:
    """Every file and every change, so many times where chance has a say."""
    for finished in (True, False):
        for file in shelf.files(finished=finished):
            for change in (*CHANGES, *OTHERS):
                if change in OTHERS and file not in shelf.files(finished=change == OTHERS[0] or not finished):
                    continue
                for one in range(1 if change in ("zeros", "empty", "lost", *OTHERS) else each):
                    yield Case(file, change, seed * 1000 + one, finished)


def answers(folder: Path) -> dict[str, Any]:
    """All that one may ask a finished run, each by itself: an answer, or a refusal."""
    questions: dict[str, Callable[[], Any]] = {
        "outcome": lambda: outcome_of_run(folder)[:2],
        "ranks": lambda: list(confed.Run.open(folder).ranks().above),
        "recommend": lambda: confed.Run.open(folder).recommend(user="3", k=5),
        "similar": lambda: confed.Run.open(folder).similar("5", k=5),
    }
    return {name: _said(question) for name, question in questions.items()}


def _said(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except ConfedError as error:
        return error


def outcome(case: Case, shelf: Shelf, where: Path) -> Outcome:
    shutil.copytree(shelf.where / ("finished" if case.finished else "broken"), where)
    _corrupt(case, shelf, where)
    try:
        wrong = _wrong_answers(shelf, where) if case.finished else []
        went = _said(lambda: confed.resume(where, rounds=MORE if case.finished else None))
        end = shelf.where / ("unbroken" if case.finished else "finished")
        if not isinstance(went, ConfedError) and (differs := difference(where, end)):
            wrong.append(f"goes on to another end ({differs})")
    except Exception:
        return Outcome(held=False, how=traceback.format_exc())
    finally:
        shutil.rmtree(where)
    if wrong:
        return Outcome(held=False, how=", ".join(wrong))
    return Outcome(held=True, how="refused" if isinstance(went, ConfedError) else "goes on to the same end")


def _corrupt(case: Case, shelf: Shelf, where: Path) -> None:
    path = _path(where, case.file)
    if case.change in OTHERS:
        path.write_bytes(_path(shelf.other(case), case.file).read_bytes())
        return
    changed = CHANGES[case.change](path.read_bytes(), random.Random(case.seed))
    if changed is None:
        path.unlink()
    else:
        path.write_bytes(changed)


def _path(folder: Path, file: str) -> Path:
    (path,) = folder.glob(f"{file}*")
    return path


def _wrong_answers(shelf: Shelf, where: Path) -> list[str]:
    found = answers(where)
    return [
        f"{name} answers otherwise"
        for name, said in found.items()
        if not isinstance(said, ConfedError) and said != shelf.answers[name]
    ]
