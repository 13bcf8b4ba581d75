"""Checkpoints of runs whose clients are elsewhere: a folder for each, with a file of the server and one of every site.

The server's file is written last, so that a commit that has it is whole. Between runs there is one file, as of any
other run: commits are gathered when a run ends or goes on, and spread when it goes on elsewhere. So a run may be
resumed at another place, or with other workers.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from torch import Tensor

from confed.errors import ConfedError
from confed.federations.remote import site_path
from confed.federations.states import cut_state, joined_states
from confed.files import written_beside
from confed.runs.folder import Checkpoint, RunFolder, read_checkpoint, write_checkpoint
from confed.tensors import joined, load_tensors, part_of, save_tensors


class CommitFolder(RunFolder):
    """The run folder as the server of so many sites sees it: its checkpoints are commits, of which it holds a part."""

    def __init__(self, path: Path, sites: int = 0) -> None:
        super().__init__(path)
        self._sites = sites

    def load_checkpoint(self) -> Checkpoint | None:
        commits = _commits(self.path)
        return read_checkpoint(commits[max(commits)]) if commits else None

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """After the sites have written theirs; earlier commits are no longer needed then."""
        where = self.parts(checkpoint.progress.round)
        written = len(list(where.glob("site-*.safetensors")))
        if written < self._sites:
            raise ConfedError(
                f"{where}: {written} of {self._sites} workers have written here: all of them must see the run's folder "
                f"under the same path"
            )
        write_checkpoint(where / f"server-of-{self._sites}.safetensors", checkpoint)
        _remove([path for number, path in _commits(self.path).items() if number < checkpoint.progress.round])


def _commits(path: Path) -> dict[int, Path]:
    """By round, the server's file of every whole commit."""
    found = {}
    for server in (path / "checkpoint").glob("round-*/server-of-*.safetensors"):
        sites = int(server.stem.removeprefix("server-of-"))
        if len(list(server.parent.glob("site-*.safetensors"))) == sites:
            found[int(server.parent.name.removeprefix("round-"))] = server
    return found


def _remove(servers: Iterable[Path]) -> None:
    """The server's file first: without it a commit is none."""
    for server in servers:
        server.unlink()
        shutil.rmtree(server.parent)


def gather(folder: RunFolder) -> None:
    """Make one checkpoint of the last commit, if there is one that is newer; then none is left."""
    commits = _commits(folder.path)
    last = max(commits, default=0)
    if last > folder.load_progress().round:
        commit = read_checkpoint(commits[last])
        sites = [load_tensors(path)[0] for path in sorted(commits[last].parent.glob("site-*.safetensors"))]
        places = [part_of(site, "site")["ids"] for site in sites]  # in a simulation clients are numbered as they stand
        state, best = (joined_states([part_of(site, part) for site in sites], places) for part in ("state", "best"))
        whole = Checkpoint(commit.progress, {**commit.state, **state}, {**commit.best, **best}, commit.ranks)
        folder.save_checkpoint(whole)
    _remove(commits[number] for number in sorted(commits))
    for unfinished in (folder.path / "checkpoint").glob("round-*"):
        shutil.rmtree(unfinished)


def spread(folder: RunFolder, held: Sequence[Tensor], domains: Sequence[Collection[str]], prefix: str) -> None:
    """Make a commit of the checkpoint, if there is one: each site gets the part of its clients, who are `held` by their
    places, or of the companies of its `domains`. The names of the server's tensors begin with `prefix`.
    """
    checkpoint = folder.load_checkpoint()
    if checkpoint is None:
        return
    where = folder.parts(checkpoint.progress.round)
    for site, places in enumerate(held):
        parts = {
            "state": cut_state(checkpoint.state, places, domains[site]),
            "best": cut_state(checkpoint.best, places, domains[site]),
            "site": {"ids": places},
        }
        with written_beside(site_path(where, site)) as beside:
            save_tensors(beside, joined(parts), {})
    state, best = (
        {name: tensor for name, tensor in of.items() if name.startswith(prefix)}
        for of in (checkpoint.state, checkpoint.best)
    )
    CommitFolder(folder.path, len(held)).save_checkpoint(Checkpoint(checkpoint.progress, state, best, checkpoint.ranks))
