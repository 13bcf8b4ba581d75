"""Clients in actors of Ray: the same parameters, and the same outcome after a death."""

import os
import signal
from pathlib import Path

import pytest

import confed
from confed.methods.registry import method_named
from confed.runs.folder import RunFolder
from confed.testing import assert_close_states
from tests.golden.cases import GENTLE, SMALL
from tests.outcome import difference

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.apart

PEOPLE, COMPANIES = "synthetic:users=120,items=150", "synthetic:domains=3,users=80,items=150"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One Ray for all tests: runs use it, as they would use the one of a cluster's machine."""
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False)
    yield
    ray.shutdown()


def trained(method, folder, listener=None, rounds=3, **place):
    known = method_named(method).config_class.model_fields
    options = {name: value for name, value in {**SMALL, **GENTLE.get(method, {})}.items() if name in known}
    data = COMPANIES if method_named(method).domains == "several" else PEOPLE
    few = {"negatives": 20, "more_negatives": [], "cutoffs": [5, 10]}
    settings = {"seed": 2, "dtype": "float64", "checkpoint_seconds": 0, "options": {**options, **few}}
    return confed.run(method, data, folder=folder, rounds=rounds, listener=listener, **settings, **place)


@pytest.mark.parametrize("method", ["pfedrec", "cofedrec", "fed3cr", "metamf", "perfedrec", "fppdm++"])
def test_two_actors_give_what_one_process_gives(method, tmp_path):
    here = trained(method, tmp_path / "here")
    there = trained(method, tmp_path / "there", engine="ray", workers=2)
    assert [line["views"] for line in here.lines] == [line["views"] for line in there.lines]
    one, other = (RunFolder(tmp_path / name).load_checkpoint() for name in ("here", "there"))
    assert one.progress == other.progress
    assert_close_states(one.state, other.state, 1e-10)
    assert_close_states(one.best, other.best, 1e-10)


def site_actors():
    """The processes of the sites' actors on this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes().startswith(b"ray::_SiteActor"):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def test_an_actor_that_is_killed_in_the_middle_of_a_round_changes_nothing(tmp_path):
    killed = []

    def kill(line, settings):
        if line["round"] == 2 and not killed:
            killed.extend(site_actors()[:1])
            os.kill(killed[0], signal.SIGKILL)

    trained("pfedrec", tmp_path / "unbroken", engine="ray", workers=2, rounds=30)
    trained("pfedrec", tmp_path / "broken", kill, engine="ray", workers=2, rounds=30)
    assert killed
    assert difference(tmp_path / "unbroken", tmp_path / "broken") == ""
