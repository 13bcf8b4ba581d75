"""Checkpoints of runs whose clients are elsewhere: whole or none, and in one piece between runs."""

from dataclasses import replace

import pytest
import torch

from confed.errors import DamagedError
from confed.federations.remote import site_name
from confed.runs.checkpoint import Checkpoint, Progress
from confed.runs.commits import gather, spread
from confed.runs.folder import RunFolder
from confed.runs.log import NOTHING
from confed.tensors import joined, save_sealed

HELD = [torch.tensor([0, 3]), torch.tensor([1, 2])]


def whole(number, users=4):
    rows = torch.arange(users * 2.0).view(users, 2) + 10 * number
    state = {"server.items": torch.full((3,), float(number)), "client.vector": rows}
    return Checkpoint(Progress(number, number, 0.5, 0), state, {n: t + 1 for n, t in state.items()})


def spread_out(path, number):
    """A folder with the checkpoint of a round, in parts."""
    folder = RunFolder(path, "the run")
    folder.save_checkpoint(whole(number), NOTHING)
    spread(folder, HELD, [("",), ("",)], "server.")
    return folder


def commit(folder, number, sites=2):
    """Of a later round, by the sites that come so far, and by the server if all have."""
    later = whole(number)
    written = []
    for site, places in enumerate(HELD[:sites]):
        parts = {
            "state": {"client.vector": later.state["client.vector"][places]},
            "best": {"client.vector": later.best["client.vector"][places]},
            "site": {"ids": places},
        }
        written.append(save_sealed(folder.parts, site_name(site), joined(parts)))
    if sites == len(HELD):
        state, best = ({"server.items": of["server.items"]} for of in (later.state, later.best))
        folder.save_checkpoint(replace(later, state=state, best=best, sites=tuple(written)), NOTHING)


def assert_is(checkpoint, number):
    expected = whole(number)
    assert checkpoint.progress == expected.progress and checkpoint.sites == ()
    for part in ("state", "best"):
        tensors, others = getattr(checkpoint, part), getattr(expected, part)
        assert tensors.keys() == others.keys()
        assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


def names(folder):
    return sorted(path.name.partition("-")[0] for path in folder.parts.iterdir())


def test_a_checkpoint_is_spread_and_gathered(tmp_path):
    folder = spread_out(tmp_path, 2)
    found = folder.load_checkpoint()
    assert found.state.keys() == {"server.items"} and len(found.sites) == 2
    assert names(folder) == ["best", "manifest.json", "ranks", "site", "site", "state"]
    gather(folder)
    assert_is(folder.load_checkpoint(), 2)
    assert names(folder) == ["best", "manifest.json", "ranks", "state"]


def test_the_newest_commit_counts_and_older_ones_go(tmp_path):
    folder = spread_out(tmp_path, 2)
    commit(folder, 5)
    assert len(list(folder.parts.iterdir())) == 6
    gather(folder)
    assert_is(folder.load_checkpoint(), 5)


def test_a_commit_that_is_not_whole_is_none(tmp_path):
    folder = spread_out(tmp_path, 2)
    commit(folder, 5, sites=1)
    assert folder.load_progress().round == 2
    gather(folder)
    assert_is(folder.load_checkpoint(), 2)
    assert names(folder) == ["best", "manifest.json", "ranks", "state"]


def test_what_is_gathered_stays_as_it_is(tmp_path):
    folder = spread_out(tmp_path, 2)
    folder.save_checkpoint(whole(7), NOTHING)
    before = {path.name: path.stat().st_mtime_ns for path in folder.parts.iterdir()}
    gather(folder)
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.parts.iterdir()}
    assert_is(folder.load_checkpoint(), 7)


def test_a_part_that_is_lost_or_changed_is_missed(tmp_path):
    folder = spread_out(tmp_path, 2)
    part = next(folder.parts.glob("site-1-*"))
    data = part.read_bytes()
    for damage in (lambda: part.write_bytes(data[:-1] + b"?"), part.unlink):
        damage()
        with pytest.raises(DamagedError, match="site-1-"):
            gather(folder)


def test_nothing_is_gathered_where_there_is_nothing(tmp_path):
    folder = RunFolder(tmp_path, "the run")
    gather(folder)
    spread(folder, HELD, [("",), ("",)], "server.")
    assert folder.load_checkpoint() is None
