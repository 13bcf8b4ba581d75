"""Commits of runs whose clients are elsewhere: whole or none, and one checkpoint between runs."""

import pytest
import torch

from confed.errors import ConfedError
from confed.federations.remote import site_path
from confed.runs.commits import CommitFolder, gather, spread
from confed.runs.folder import Checkpoint, Progress, RunFolder
from confed.tensors import joined, save_tensors

HELD = [torch.tensor([0, 3]), torch.tensor([1, 2])]


def whole(number, users=4):
    rows = torch.arange(users * 2.0).view(users, 2) + 10 * number
    state = {"server.items": torch.full((3,), float(number)), "client.vector": rows}
    return Checkpoint(Progress(number, number, 0.5, 0), state, {n: t + 1 for n, t in state.items()})


def spread_out(path, number):
    """A folder with the checkpoint of a round, as commits."""
    folder = RunFolder(path)
    folder.save_checkpoint(whole(number))
    spread(folder, HELD, [("",), ("",)], "server.")
    return folder


def commit(folder, number, sites=2):
    """Of a later round, by the sites that come so far, and by the server if all have."""
    later = whole(number)
    for site, places in enumerate(HELD[:sites]):
        parts = {
            "state": {"client.vector": later.state["client.vector"][places]},
            "best": {"client.vector": later.best["client.vector"][places]},
            "site": {"ids": places},
        }
        path = site_path(folder.parts(number), site)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_tensors(path, joined(parts), {})
    own = Checkpoint(
        later.progress, {"server.items": later.state["server.items"]}, {"server.items": later.best["server.items"]}
    )
    CommitFolder(folder.path, 2).save_checkpoint(own)


def assert_is(checkpoint, number):
    expected = whole(number)
    assert checkpoint.progress == expected.progress
    for part in ("state", "best"):
        tensors, others = getattr(checkpoint, part), getattr(expected, part)
        assert tensors.keys() == others.keys()
        assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())


def test_a_checkpoint_is_spread_and_gathered(tmp_path):
    folder = spread_out(tmp_path, 2)
    assert CommitFolder(tmp_path, 2).load_checkpoint().state.keys() == {"server.items"}
    (tmp_path / "checkpoint" / "latest.safetensors").unlink()
    gather(folder)
    assert_is(folder.load_checkpoint(), 2)
    assert not list((tmp_path / "checkpoint").glob("round-*"))


def test_the_newest_commit_counts_and_older_ones_go(tmp_path):
    folder = spread_out(tmp_path, 2)
    commit(folder, 5)
    assert [path.name for path in (tmp_path / "checkpoint").glob("round-*")] == ["round-5"]
    gather(folder)
    assert_is(folder.load_checkpoint(), 5)


def test_a_commit_that_is_not_whole_is_none(tmp_path):
    folder = spread_out(tmp_path, 2)
    with pytest.raises(ConfedError, match="1 of 2 workers have written here: all of them must see the run's folder"):
        commit(folder, 5, sites=1)
    assert CommitFolder(tmp_path, 2).load_checkpoint().progress.round == 2
    gather(folder)
    assert_is(folder.load_checkpoint(), 2)


def test_a_commit_of_which_a_kill_left_some_files_is_none(tmp_path):
    folder = spread_out(tmp_path, 2)
    commit(folder, 5)
    site_path(folder.parts(5), 0).unlink()
    gather(folder)
    assert_is(folder.load_checkpoint(), 2)


def test_an_older_commit_does_not_replace_a_newer_checkpoint(tmp_path):
    folder = spread_out(tmp_path, 2)
    folder.save_checkpoint(whole(7))
    gather(folder)
    assert_is(folder.load_checkpoint(), 7)


def test_nothing_is_gathered_where_there_is_nothing(tmp_path):
    folder = RunFolder(tmp_path)
    gather(folder)
    spread(folder, HELD, [("",), ("",)], "server.")
    assert folder.load_checkpoint() is None
