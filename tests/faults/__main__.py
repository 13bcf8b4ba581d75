"""All of the harness: python -m tests.faults (`make faults`).

Every part is run once and its figures are kept in tests/faults/results.json, so that a run that was broken off goes on
with the next part; `--again` forgets them. The table is printed, and written to tests/faults/RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from papers.provenance import code_here

from confed.files import written_beside
from confed.runs.memory import peak_rss_mb, reset_peak
from tests.faults import corruptions, files, kills, options, planted, power, trouble, writers
from tests.faults.outcomes import Outcome

HERE = Path(__file__).parent
RESULTS, TABLE = HERE / "results.json", HERE / "RESULTS.md"
WRITTEN = ("tests/faults/results.json", "tests/faults/RESULTS.md")
SEED = 1
LONGEST = 20.0
"""Seconds that a case may take, or each of its steps, beside what it takes undisturbed."""

Cases = Iterator[tuple[str, Callable[[], Outcome]]]


def _files(where: Path, reader: str, column: str) -> Cases:
    for case in files.cases_of(SEED, reader, column):
        yield case.name, lambda case=case: files.outcome(case, where)


def _options(where: Path) -> Cases:
    for number, case in enumerate(islice(options.cases(SEED), 600)):
        yield case.name, lambda case=case, number=number: options.outcome(case, where / str(number))


def _corruptions(where: Path) -> Cases:
    shelf = corruptions.Shelf(where / "shelf")
    for case in corruptions.cases(SEED, shelf):
        yield case.name, lambda case=case: corruptions.outcome(case, shelf, where / "case")


def _power(where: Path) -> Cases:
    for method in ("fedmf", "cofedrec"):
        for case in power.cases(where / method, SEED, method=method):
            yield f"{method} {case.name}", lambda case=case: power.outcome(case)


def _kills(where: Path, method: str, place: str, most: int) -> Cases:
    case, unbroken = kills.Case(method, place), where / "unbroken"
    last = kills.calls(where / "counted", case)  # compiles as well
    began = time.monotonic()
    kills.train(unbroken, case)
    took = time.monotonic() - began
    step = max(2 * last // most, 1)
    for number, one in enumerate(islice(kills.cases(SEED, last, method, place), 0, None, step)):
        yield one.name, lambda one=one, number=number: kills.outcome(one, where / str(number), unbroken, took)


def _trouble(where: Path) -> Cases:
    kills.train(where / "unbroken", kills.Case())
    for case in trouble.cases(kills.calls(where / "counted", kills.Case())):
        yield case.name, lambda case=case: trouble.outcome(case, where / str(case.call), where / "unbroken")


def _writers(where: Path) -> Cases:
    kills.train(where / "unbroken", kills.Case())
    for case in writers.cases(10):
        yield case.name, lambda case=case: writers.outcome(case, where / case.name, where / "unbroken")


def _planted(where: Path) -> Cases:
    for bug in planted.BUGS:
        yield bug.name, lambda bug=bug: planted.outcome(bug, where / bug.name)


PARTS: dict[str, Callable[[Path], Cases]] = {
    **{
        f"malformed {reader}, {column}": partial(_files, reader=reader, column=column)
        for reader, column in files.groups()
    },
    "absurd options": _options,
    "corruptions of a run folder": _corruptions,
    "losses of power": _power,
    "kills on local, fedmf": partial(_kills, method="fedmf", place="local", most=1000),
    "kills on local, cofedrec": partial(_kills, method="cofedrec", place="local", most=1000),
    "kills on processes, cofedrec": partial(_kills, method="cofedrec", place="processes", most=40),
    "kills on local, fedrap": partial(_kills, method="fedrap", place="local", most=60),
    "kills on processes, fedrap": partial(_kills, method="fedrap", place="processes", most=20),
    "kills on ray, cofedrec": partial(_kills, method="cofedrec", place="ray", most=30),
    "trouble with the disk": _trouble,
    "two writers at once": _writers,
    "planted bugs, noticed": _planted,
}


def run(part: str) -> dict[str, Any]:
    """Figures of a part: how many cases were tried, held and broke, what broke, and what the slowest and all took."""
    began, tried, slowest, delay, broke = time.monotonic(), 0, 0.0, 0.0, {}
    reset_peak()
    with tempfile.TemporaryDirectory(prefix="confed-faults-") as folder:
        for name, outcome in PARTS[part](Path(folder)):
            start = time.monotonic()
            found = outcome()
            took = time.monotonic() - start if found.slowest_step is None else found.slowest_step
            tried, slowest, delay = tried + 1, max(slowest, took), max(delay, took - found.undisturbed)
            if not found.held:
                broke[name] = found.how
            elif took > LONGEST + min(found.undisturbed, LONGEST):
                broke[name] = f"took {took:.0f} s"
            if tried % 100 == 0:
                print(f"{part}: {tried:,} tried, {len(broke)} broke", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began
    figures = {"tried": tried, "broke": broke, "seconds": seconds, "slowest": slowest, "delay": delay}
    return {**figures, "peak_mb": peak_rss_mb(), "code": code_here("tests/faults", *(f":!{path}" for path in WRITTEN))}


def table(results: dict[str, dict[str, Any]]) -> str:
    """`late`: how much longer a step took, at most, than one that nobody disturbs, which on Ray has much to start."""
    head = "part | tried | held | broke | slowest step, s | late, s | minutes | peak MB | commit"
    lines = [f"| {head} |", "|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for part, of in ((part, results[part]) for part in PARTS if part in results):
        counts = f"{of['tried']:,} | {of['tried'] - len(of['broke']):,} | {len(of['broke'])}"
        late = f"{of.get('delay', of['slowest']):.1f}"  # of parts whose steps are no programs, all of it
        took = f"{of['slowest']:.1f} | {late} | {of['seconds'] / 60:.1f} | {of['peak_mb']:,.0f}"
        changed = ", changed" if of["code"].get("dirty") else ""
        lines.append(f"| {part} | {counts} | {took} | {str(of['code']['commit'])[:7]}{changed} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--again", action="store_true", help="also parts that were run before")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
    torch.set_num_threads(1)
    os.environ["CONFED_CACHE"] = tempfile.mkdtemp(prefix="confed-cache-")
    wanted = chosen.parts or list(PARTS)
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results = {part: of for part, of in stored.items() if not (chosen.again and part in wanted)}
    for part in wanted:
        if part not in results:
            results[part] = run(part)
            with written_beside(RESULTS) as beside:
                beside.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
            with written_beside(TABLE) as beside:
                beside.write_text(table(results), "utf-8")
    print(table(results))
    broken = {part: of["broke"] for part, of in results.items() if of["broke"]}
    for part, cases in broken.items():
        for name, how in cases.items():
            print(f"{part}: {name}: {how}")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
