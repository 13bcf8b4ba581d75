"""Whether every stored figure is what its recipe would run today: python -m papers.check.

    python -m papers.check                                                    # what is stale, and what to do about it
    python -m papers.check --assume protocol.dedupe=true --because "…"        # a new setting: what old runs amounted to
    python -m papers.check --retire method_options.old --because "…"          # a setting that is gone

A setting has a dotted name, a value is JSON or else text. Both write into every cell that the setting is news to, with
the reason. They are for changes that leave old figures as they are; whatever would change a figure has to be run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from confed.data.recognition import content_hashes, in_catalogue
from confed.data.registry import load
from confed.errors import ConfedError
from confed.runs.settings import Settings
from papers.cells import Cell, settings_of
from papers.cofedrec import recipe as cofedrec
from papers.defaults import recipe as defaults
from papers.fed3cr import recipe as fed3cr
from papers.foundation import recipe as foundation
from papers.fppdm import recipe as fppdm
from papers.methods import recipe as methods
from papers.provenance import Record, assume, compared, dumped, flat, retire
from papers.results import Results

RECIPES = {
    "foundation": foundation,
    "cofedrec": cofedrec,
    "fed3cr": fed3cr,
    "fppdm": fppdm,
    "defaults": defaults,
    "methods": methods,
}


def stale(cells: Iterable[Cell], stored: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for every way in which stored figures are not those of the cells as they would be run today."""
    listed = {cell.name: cell for cell in cells}
    for name, result in stored.items():
        if name not in listed:
            yield f"{name}: no cell of the recipe has this name: remove its line, or list the cell again"
            continue
        cell, made_with = listed[name], result["provenance"]
        today = settings_of(cell, made_with["settings"].get("facts"))
        yield from (f"{name}: {line}" for line in compared(made_with, today))
        held = made_with["settings"]["content_hash"]
        hashes = {cell.content_hash} if cell.content_hash else hashes_of(today.dataset)
        if held not in hashes:
            wanted = " or ".join(sorted(hashes))
            yield f"{name}: its data had the content hash {held}, {today.dataset} has {wanted}: run it again"


@cache
def hashes_of(dataset: str) -> Collection[str]:
    """The content hashes that a dataset may have: the catalogue's, or of one that is made, that of making it."""
    return content_hashes(dataset) if in_catalogue(dataset) else {load(dataset).content_hash}


def edited(edit: Callable[[Record, Settings], bool]) -> int:
    """Edit the record of every stored cell that a recipe lists; how many had something to edit."""
    count = 0
    for recipe in RECIPES.values():
        listed = {cell.name: cell for cell in recipe.cells()}
        with Results(recipe.RESULTS).changed() as stored:
            for name in stored.keys() & listed.keys():
                count += edit(stored[name]["provenance"], settings_of(listed[name]))
    return count


def assume_everywhere(text: str, because: str) -> int:
    name, equals, told = text.partition("=")
    if not (name and equals):
        raise ConfedError(f"--assume {text!r}: write it as name=value, such as protocol.dedupe=true")

    def edit(stored: Record, today: Settings) -> bool:
        missing = name in flat(dumped(today)) and name not in flat(stored["settings"])
        if missing:
            assume(stored, name, _value(told), because)
        return missing

    return edited(edit)


def retire_everywhere(name: str, because: str) -> int:
    def edit(stored: Record, today: Settings) -> bool:
        gone = name in flat(stored["settings"]) and name not in flat(dumped(today))
        if gone:
            retire(stored, name, because)
        return gone

    return edited(edit)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m papers.check", description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--assume", metavar="NAME=VALUE", help="what a new setting amounted to in runs without it")
    what.add_argument("--retire", metavar="NAME", help="a setting that is gone")
    parser.add_argument("--because", help="why no figure would change; goes into the records")
    chosen = parser.parse_args()
    asked = chosen.assume or chosen.retire
    if asked and not chosen.because:
        parser.error("say --because: a record without a reason is worth nothing")
    try:
        if asked:
            work = assume_everywhere if chosen.assume else retire_everywhere
            _report(work(asked, chosen.because), asked)
        else:
            _list()
    except ConfedError as error:
        parser.error(str(error))


def _report(count: int, asked: str) -> None:
    if not count:
        raise ConfedError(f"{asked}: there is no stored cell that this is news to; check the name")
    print(f"{count} cells know it now")


def _list() -> None:
    found = [
        f"{paper}: {line}"
        for paper, recipe in RECIPES.items()
        for line in stale(recipe.cells(), Results(recipe.RESULTS).read())
    ]
    if found:
        raise SystemExit("\n".join(found))
    print("every stored figure is what its recipe would run today")


if __name__ == "__main__":
    main()
