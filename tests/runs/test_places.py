"""Runs with clients in other processes, as users start them: deaths, resuming elsewhere, what the server sees."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import confed
from confed.errors import ConfedError
from confed.runs.folder import RunFolder
from tests.federations.pool import workers_of_this_process
from tests.outcome import difference, outcome

pytestmark = pytest.mark.apart

DATA = "synthetic:users=300,items=500"
ROUNDS = 5


def run(folder, listener=None, **settings):
    chosen = {"engine": "processes", "workers": 2, "dtype": "float64", "seed": 1, "rounds": ROUNDS, **settings}
    return confed.run("cofedrec", DATA, folder=folder, listener=listener, options={"dim": 8}, **chosen)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    path = tmp_path_factory.mktemp("unbroken") / "run"
    run(path)
    return path


class Killer:
    """Kills a worker while the round after `number` is trained."""

    def __init__(self, number):
        self.number = number
        self.killed = []

    def __call__(self, line, settings):
        if line["round"] == self.number and not self.killed:
            self.killed = workers_of_this_process()[:1]
            os.kill(self.killed[0], signal.SIGKILL)


@pytest.mark.parametrize("checkpoint_seconds", [0, 1000])
def test_a_worker_that_is_killed_in_the_middle_of_a_round_changes_nothing(checkpoint_seconds, unbroken, tmp_path):
    """The rounds since the last commit, or since the beginning, are trained again."""
    killer = Killer(2)
    run(tmp_path / "run", killer, checkpoint_seconds=checkpoint_seconds)
    assert killer.killed
    assert difference(unbroken, tmp_path / "run") == ""
    assert not list((tmp_path / "run" / "checkpoint").glob("site-*"))


def test_a_worker_that_dies_again_and_again_ends_the_run(tmp_path):
    def kill(line, settings):
        if line["round"] >= 2:
            os.kill(workers_of_this_process()[0], signal.SIGKILL)

    with pytest.raises(ConfedError, match=r"worker 0 died 4 times, the last time with exit code -9"):
        run(tmp_path / "run", kill, checkpoint_seconds=0, workers=1, rounds=30)
    assert RunFolder(tmp_path / "run").load_checkpoint().progress.round >= 1, "what was done is not lost"
    assert workers_of_this_process() == []


class StopError(Exception):
    pass


def stop(line, settings):
    if line["round"] == 2:
        raise StopError


def test_a_run_begun_here_goes_on_in_processes_and_back(unbroken, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(StopError):
        run(path, stop, engine="local", workers=None, checkpoint_seconds=0)
    confed.resume(path, rounds=3, engine="processes", workers=3)
    confed.resume(path, rounds=4, engine="local")
    confed.resume(path, rounds=ROUNDS, engine="processes", workers=2)
    _, history, kept = outcome(path)
    _, expected, reference = outcome(unbroken)
    assert [line["views"] for line in history] == [line["views"] for line in expected]
    for name, tensor in reference.state.items():
        torch.testing.assert_close(kept.state[name], tensor, rtol=1e-10, atol=1e-12)


def test_resuming_keeps_what_is_not_said_otherwise(tmp_path, monkeypatch):
    confed.run("fedmf", DATA, rounds=1, folder=tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    ray = {"engine": "ray", "workers": 2, "address": "auto"}
    folder.write_settings(folder.settings().model_copy(update=ray))
    monkeypatch.setattr("confed.runs.api.execute", lambda *arguments: None)
    confed.resume(tmp_path / "run", rounds=2, workers=4)
    found = folder.settings()
    assert (found.engine, found.workers, found.address) == ("ray", 4, "auto")
    confed.resume(tmp_path / "run", rounds=2, engine="local")
    found = folder.settings()
    assert (found.engine, found.workers, found.address) == ("local", None, None)


def test_options_of_places_that_do_nothing_are_refused():
    for settings, said in (
        ({"workers": 2}, 'workers does nothing with engine="local"'),
        ({"engine": "processes", "address": "auto"}, 'does nothing with engine="processes"'),
        ({"engine": "cloud"}, "engine = 'cloud'"),
    ):
        with pytest.raises(ConfedError, match=said):
            confed.run("pfedrec", DATA, **settings)
    with pytest.raises(ConfedError, match='popularity has all data in one place: it runs with engine="local"'):
        confed.run("popularity", DATA, engine="processes")


def test_compare_has_methods_with_clients_elsewhere_and_others_here(tmp_path):
    place = {"engine": "processes", "workers": 1}
    summaries = confed.compare(["fedmf", "popularity"], DATA, rounds=1, out=tmp_path, **place)
    engines = {one["method"]: RunFolder(Path(one["run_dir"])).settings().engine for one in summaries}
    assert engines == {"fedmf": "processes", "popularity": "local"}


SNOOP = '''
import json, os
import numpy as np
from confed.methods.pfedrec import PFedRec
from confed.server.strategies import Average

KEY = np.int64(0x5A5A5A5A5A5A5A5A)


def occurrences(hidden):
    """How often the numbers `hidden` ^ KEY stand in this process's memory; they are never written down themselves."""
    found = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            span, rights, *rest = line.split()
            if not rights.startswith("rw") or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            for at in range(start, end, 1 << 26):
                try:
                    memory.seek(at)
                    words = np.frombuffer(memory.read(min(end - at, (1 << 26) + 64)), dtype=np.int64)
                except (OSError, ValueError):
                    continue
                places = np.flatnonzero((words ^ KEY) == hidden[0])
                for place in places:
                    window = words[place : place + len(hidden)]
                    found += len(window) == len(hidden) and bool(((window ^ KEY) == hidden).all())
    return found


class Snooping(Average):
    def aggregate(self, uploads, number):
        super().aggregate(uploads, number)
        if number == 2:
            hidden = {name: np.array(words) for name, words in json.load(open(os.environ["SNOOP_FOR"])).items()}
            found = {name: occurrences(words) for name, words in hidden.items()}
            json.dump(found, open(os.environ["SNOOP_FOUND"], "w"))


class Snoop(PFedRec):
    name = "snoop"

    def pieces(self, config, items):
        from dataclasses import replace
        pieces = super().pieces(config, items)
        return replace(pieces, strategy=Snooping(pieces.strategy.plan))
'''
KEY = np.int64(0x5A5A5A5A5A5A5A5A)


def snoop_package(folder):
    """A method in a package of its own, as somebody else would install it."""
    (folder / "snoop.py").write_text(SNOOP)
    info = folder / "snoop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: snoop\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[confed.methods]\nsnoop = snoop:Snoop\n")


def secrets_of(run, words=5):
    """What nobody but the client and its examiner may know, hidden by a key: a user's training items, held-out items of
    some users, and a user's vector after the second round."""
    cut = run._prepared().cut
    user = int(np.argmax(cut.training.positives.lengths))
    vector = RunFolder(run.folder.path).load_checkpoint().state["client.weight"][user].double().numpy()
    plain = {
        "training items": cut.training.positives[user][:words],
        "held-out items": cut.test[:words],
        "user vector": np.ascontiguousarray(vector).view(np.int64)[:words],
    }
    return {name: (values ^ KEY).tolist() for name, values in plain.items()}


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
def test_a_server_that_searches_its_memory_finds_nobody(tmp_path):
    """The same search finds all of it where everybody is in one process."""
    snoop_package(tmp_path)
    settings = {"rounds": 2, "seed": 4, "dtype": "float64", "options": {"dim": 8}}
    reference = confed.run("pfedrec", "synthetic:users=200,items=300", folder=tmp_path / "reference", **settings)
    (tmp_path / "for").write_text(json.dumps(secrets_of(reference)))
    del reference
    found = {}
    for engine in ("local", "processes"):
        script = (
            f"import confed; confed.run('snoop', 'synthetic:users=200,items=300', engine={engine!r}, "
            f"folder={str(tmp_path / engine)!r}, **{settings!r})"
        )
        paths = {"SNOOP_FOR": str(tmp_path / "for"), "SNOOP_FOUND": str(tmp_path / "found")}
        environment = {**os.environ, **paths, "PYTHONPATH": str(tmp_path)}
        subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=300)
        found[engine] = json.loads((tmp_path / "found").read_text())
    assert all(count > 0 for count in found["local"].values()), found
    assert found["processes"] == dict.fromkeys(found["local"], 0)
