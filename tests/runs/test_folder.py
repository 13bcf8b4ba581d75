import os

import pytest
import torch

from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError, DamagedError
from confed.files import _here
from confed.runs.checkpoint import START, Checkpoint, Progress
from confed.runs.finished import Run
from confed.runs.folder import RunFolder, _name, newest
from confed.runs.settings import resolve

SETTINGS = resolve("pfedrec", "ml-100k", known="ml-100k")
NOBODY = 2**22 + 1
"""No process has this number."""


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(SETTINGS, tmp_path)


def test_settings_come_back(folder):
    assert RunFolder.open(folder.path).settings() == SETTINGS


def test_two_runs_get_two_folders(tmp_path):
    assert RunFolder.create(SETTINGS, tmp_path).path != RunFolder.create(SETTINGS, tmp_path).path


def test_an_exact_folder_must_be_empty(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfedError, match="already holds files"):
        RunFolder.create(SETTINGS, tmp_path, exact=True)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_data_that_came_in_memory_comes_back(folder, tmp_path):
    assert folder.data() is None
    single = synthetic(users=10, items=10, interactions_per_user=5)
    folder.save_data(single)
    assert folder.data().content_hash == single.content_hash
    several = synthetic_domains(users=10, items=10, interactions_per_user=5)
    another = RunFolder.create(SETTINGS, tmp_path)
    another.save_data(several)
    another.begin()
    assert another.data().content_hash == several.content_hash


def test_not_a_run_folder(tmp_path):
    with pytest.raises(ConfedError, match="not a run folder"):
        RunFolder.open(tmp_path)
    with pytest.raises(ConfedError, match="not a run folder"):
        RunFolder.open(tmp_path / "nowhere")


def test_checkpoint_round_trip(folder):
    assert folder.load_checkpoint() is None
    shared = torch.arange(3.0)
    folder.save_checkpoint(Checkpoint(Progress(5, 4, 31.25, 1), {"a": shared}, {"a": shared, "b": torch.ones(2)}))
    loaded = folder.load_checkpoint()
    assert loaded.progress == Progress(5, 4, 31.25, 1)
    assert torch.equal(loaded.state["a"], shared)
    assert set(loaded.best) == {"a", "b"}
    assert not list(folder.path.rglob("*.part"))


def test_drafts_of_a_kill_are_swept_away(folder):
    folder.parts.mkdir()
    for place in (folder.path, folder.parts):
        (place / f".state.{_here()}-{NOBODY}-01234567.part").write_bytes(b"torn")
    folder.begin()
    assert not list(folder.path.rglob("*.part"))
    assert folder.settings() == SETTINGS


def test_a_run_before_its_first_evaluation_can_be_saved(folder):
    folder.save_checkpoint(Checkpoint(START, {"a": torch.zeros(1)}, {}))
    assert folder.load_checkpoint().progress == START


def finished(folder, rounds=2):
    """As a run leaves it."""
    for number in range(1, rounds + 1):
        folder.log.append({"round": number, "loss": 1 / rounds})
    tensors = {"a": torch.arange(4.0)}
    folder.save_checkpoint(Checkpoint(Progress(rounds, 1, 0.5, 1), tensors, tensors, {"local.above": torch.zeros(2)}))
    folder.save_summary({"rounds": rounds, "hr@10": 1.5})
    return folder


READ = {
    "config.toml": lambda folder: folder.settings(),
    "metrics.jsonl": lambda folder: folder.metrics(),
    "summary.json": lambda folder: folder.summary(),
    "checkpoint/manifest.json": lambda folder: folder.load_progress(),
    "checkpoint/state": lambda folder: folder.load_checkpoint(),
    "checkpoint/best": lambda folder: folder.load_best(),
    "checkpoint/ranks": lambda folder: folder.load_ranks(),
}


@pytest.mark.parametrize("file", READ)
def test_every_bit_counts(folder, file):
    """Wherever one is another, whoever reads the file is told which file it is and what to do."""
    finished(folder)
    (path,) = folder.path.glob(f"{file}*")
    data = path.read_bytes()
    before = READ[file](RunFolder.open(folder.path))
    for place in range(0, len(data), max(len(data) // 40, 1)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        try:
            after = READ[file](RunFolder.open(folder.path))
        except DamagedError as error:
            assert str(path) in error.message and ";" in error.message
        else:  # white space in JSON says nothing
            assert str(after) == str(before)
    path.write_bytes(data)
    assert str(READ[file](RunFolder.open(folder.path))) == str(before)


@pytest.mark.parametrize("file", ["config.toml", "metrics.jsonl", "summary.json", "checkpoint/manifest.json"])
def test_files_of_another_run_do_not_fit(folder, file, tmp_path):
    other = finished(RunFolder.create(SETTINGS.model_copy(update={"seed": 1}), tmp_path), rounds=3)
    (finished(folder).path / file).write_bytes((other.path / file).read_bytes())
    with pytest.raises(DamagedError, match=r"another run|are not there as written"):
        Run.open(folder.path).lines  # noqa: B018 - reading them is what is tested


def test_a_line_that_is_lost_is_missed(folder):
    finished(folder)
    path = folder.path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(DamagedError, match="the 2 lines that the checkpoint counts are not there"):
        folder.truncate_metrics()


def test_lines_after_the_checkpoint_are_dropped(folder):
    finished(folder)
    path = folder.path / "metrics.jsonl"
    kept = path.read_bytes()
    path.write_bytes(kept + b'{"round": 3, "lo')
    assert [line["round"] for line in folder.metrics()] == [1, 2]
    assert [line["round"] for line in folder.truncate_metrics()] == [1, 2]
    assert path.read_bytes() == kept


def test_no_summary_before_the_end(folder):
    with pytest.raises(ConfedError, match=r"confed\.resume"):
        folder.summary()
    assert not folder.is_finished
    finished(folder)
    assert folder.summary()["hr@10"] == 1.5 and folder.is_finished


def test_a_checkpoint_that_is_gone_is_missed(folder):
    finished(folder)
    (folder.parts / "manifest.json").unlink()
    with pytest.raises(DamagedError, match=r"manifest\.json: is gone"):
        folder.summary()


def test_a_summary_of_fewer_rounds_is_none(folder):
    """Whose removal was lost with the power."""
    finished(folder)
    folder.save_checkpoint(Checkpoint(Progress(3, 1, 0.5, 1), {}, {}), folder.manifest().log)
    with pytest.raises(ConfedError, match="has not ended"):
        folder.summary()


def test_who_reads_while_a_checkpoint_is_replaced_gets_the_newer_one(folder, monkeypatch):
    """Its files are gone after the manifest was read; but what is damaged stays damaged."""
    finished(folder)
    first = folder.manifest()
    later = Checkpoint(Progress(3, 3, 0.5, 0), {"a": torch.ones(1)}, {"b": torch.ones(1)}, {"c": torch.ones(1)})
    folder.save_checkpoint(later, first.log)
    second, read = folder.manifest(), RunFolder.manifest
    for load, expected in (("load_best", later.best), ("load_ranks", later.ranks), ("load_checkpoint", later)):
        told = iter([first, second])
        monkeypatch.setattr(RunFolder, "manifest", lambda _, told=told: next(told))
        assert getattr(folder, load)() == expected
    monkeypatch.setattr(RunFolder, "manifest", read)
    (folder.parts / second.best.name).unlink()
    with pytest.raises(DamagedError, match="cannot be read"):
        folder.load_best()


def test_a_run_that_somebody_goes_on_with_is_not_the_newest(tmp_path):
    old, new = (finished(RunFolder.create(SETTINGS, tmp_path)) for _ in range(2))
    for age, run in enumerate((new, old)):
        run.save_summary({"rounds": 2, "method": "pfedrec"})
        os.utime(run.path / "summary.json", (10.0 - age, 10.0 - age))
    assert newest(tmp_path) == new.path
    new.save_checkpoint(Checkpoint(Progress(3, 1, 0.5, 1), {}, {}), new.manifest().log)
    assert newest(tmp_path) == old.path
    old.save_summary({"rounds": 2, "method": "fedmf"})
    with pytest.raises(ConfedError, match="no finished run of pfedrec"):
        newest(tmp_path, "pfedrec")


def test_a_folder_is_its_owners(folder):
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_who_writes_for_a_launcher_that_is_gone_writes_no_more(folder):
    with folder.held():
        server = RunFolder(folder.path, folder.run_id).on_behalf_of_the_holder()
        server.append_metrics({"round": 1})
        server.save_checkpoint(Checkpoint(Progress(1, 1, 0.5, 0), {}, {}))
        (folder.path / ".lock-holder.json").write_text('{"process": 1}')  # as the next one does
        for write in (lambda: server.append_metrics({}), lambda: server.save_checkpoint(Checkpoint(START, {}, {}))):
            with pytest.raises(ConfedError, match="somebody else goes on with the run"):
                write()
    assert folder.load_progress().round == 1


def test_one_writes_at_a_time(folder):
    with folder.held(), pytest.raises(ConfedError, match=f"in use by process {os.getpid()} on "), folder.held():
        pass
    with folder.held():
        pass


@pytest.mark.parametrize(
    ("dataset", "shown"),
    [
        ("ml-100k", "ml-100k"),
        ("shelf/ratings.csv", "ratings.csv"),
        ("synthetic:users=10,affinity=0.5", "synthetic-users10-affinity0.5"),
        ("book=shelf/a.csv,music=b.csv", "book-music"),
        ("../a=b/c d.csv", "c-d.csv"),
        ("..", "data"),
        ("/", "data"),
        ("a..b/..", "data"),
        ("a\0b\x1b[31m\n.csv", "a-b-31m-.csv"),
        ("é" * 300, "é" * 40),
        ("\U0001f600.csv", "csv"),
        ("\udcff.csv", "csv"),
    ],
)
def test_a_folder_is_called_by_its_dataset(tmp_path, dataset, shown):
    chosen = resolve("pfedrec", "ml-100k").model_copy(update={"dataset": dataset})
    name = _name(chosen)
    assert name.startswith(f"pfedrec-{shown}-strict-seed0-2")
    (tmp_path / name).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_that_is_there_is_no_domain(tmp_path, monkeypatch):
    """`a=b/c.csv` may be the file of domain a, or a file in a folder that is called so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    (tmp_path / "a=b" / "c.csv").write_text("user,item\n1,2\n")
    chosen = resolve("pfedrec", "a=b/c.csv")
    assert RunFolder.create(chosen, tmp_path / "runs").path.parent == tmp_path / "runs"
    assert _name(chosen).startswith("pfedrec-c.csv-strict")
    (tmp_path / "a=b" / "c.csv").unlink()
    assert _name(chosen).startswith("pfedrec-a-strict")
