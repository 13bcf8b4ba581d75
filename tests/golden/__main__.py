"""Record golden states anew: see the package."""

from __future__ import annotations

import argparse

import torch

from confed.data.sources import data_dir
from confed.methods.registry import METHODS
from tests.golden import __doc__ as description
from tests.golden.cases import DTYPES, REAL, cases, real_trainer, sketch, two_rounds
from tests.golden.store import real_path, tiny_path, write


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=(description or "").splitlines()[0])
    parser.add_argument("methods", nargs="*", help="only these")
    chosen = parser.parse_args().methods
    if unknown := [method for method in chosen if method not in METHODS]:
        parser.error(f"no such method: {', '.join(unknown)}; `confed methods` lists them")
    torch.set_num_threads(1)
    for method in chosen or METHODS:
        found = {}
        for case in cases(method):
            for dtype in DTYPES:
                found[f"{case.name}/{dtype}"] = two_rounds(case.trainer(dtype))
        write(tiny_path(method), found)
        if method in REAL and data_dir():
            state, notes = two_rounds(real_trainer(method))
            write(real_path(method), {"default": ({name: sketch(tensor) for name, tensor in state.items()}, notes)})
        print(method, len(found))


if __name__ == "__main__":
    main()
