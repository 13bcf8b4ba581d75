import pytest
import torch

from confed.data.synthetic import synthetic
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.runs.folder import START, Checkpoint, Progress, RunFolder, _name
from confed.runs.settings import resolve

SETTINGS = resolve("pfedrec", "ml-100k", known="ml-100k")


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
    single.save(folder.data_path)
    assert folder.data().content_hash == single.content_hash
    several = synthetic_domains(users=10, items=10, interactions_per_user=5)
    another = RunFolder.create(SETTINGS, tmp_path)
    several.save(another.domains_path)
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
    (folder.path / "checkpoint").mkdir()
    (folder.path / "checkpoint" / ".latest.safetensors.1234.part").write_bytes(b"torn")
    folder.begin()
    assert not list((folder.path / "checkpoint").iterdir())
    assert folder.settings() == SETTINGS


def test_a_run_before_its_first_evaluation_can_be_saved(folder):
    folder.save_checkpoint(Checkpoint(START, {"a": torch.zeros(1)}, {}))
    assert folder.load_checkpoint().progress == START


def test_a_broken_checkpoint_is_an_error_that_names_it(folder):
    folder.save_checkpoint(Checkpoint(START, {"a": torch.zeros(1)}, {}))
    path = next(folder.path.rglob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(ConfedError, match="not a checkpoint"):
        folder.load_checkpoint()


def test_metrics_are_cut_back_to_the_checkpoint_and_a_torn_line_is_dropped(folder):
    for number in (1, 2, 3):
        folder.append_metrics({"round": number})
    path = folder.path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"round": 4, "lo')
    assert [line["round"] for line in folder.metrics()] == [1, 2, 3]
    assert [line["round"] for line in folder.truncate_metrics(2)] == [1, 2]
    assert [line["round"] for line in folder.metrics()] == [1, 2]


def test_no_summary_before_the_end(folder):
    with pytest.raises(ConfedError, match=r"confed\.resume"):
        folder.summary()
    folder.save_summary({"hr@10": 1.5})
    assert folder.summary() == {"hr@10": 1.5}


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
