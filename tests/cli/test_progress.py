import pytest

from confed.cli.progress import fetch, is_landmark, live_progress, status
from confed.errors import ConfedError
from confed.runs.settings import resolve

SETTINGS = resolve("pfedrec", "x", rounds=40)
LINE = {"round": 4, "loss": 0.5, "views": {"local": {"validation": {"ndcg@10": 12.345}}}}


def test_status_shows_loss_and_the_selecting_metric():
    assert status(LINE, SETTINGS) == "loss 0.5000  validation ndcg@10 12.35 (local)"
    assert status({"round": 1, "loss": None, "views": {}}, SETTINGS) == ""


def test_status_of_several_domains_is_their_mean():
    domains = {"a": {"ndcg@10": 10.0}, "b": {"ndcg@10": 14.0}}
    line = {"round": 4, "loss": 2.5, "views": {"local": {"validation": {"ndcg@10": 12.0, "domains": domains}}}}
    assert status(line, resolve("fppdm++", "x", protocol="warm")) == "loss 2.5000  validation ndcg@10 12.00 (local)"


def test_landmarks_are_about_ten_lines_and_the_last_round():
    assert sum(is_landmark(n, 100) for n in range(1, 101)) == 10
    assert is_landmark(7, 7)


def test_without_a_terminal_lines_are_printed(capsys):
    with live_progress() as listen:
        listen(LINE, SETTINGS)
    assert "pfedrec seed 0: round 4/40" in capsys.readouterr().err


def test_fetching_what_cannot_be_downloaded_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("CONFED_DATA", str(tmp_path))
    monkeypatch.setenv("CONFED_CACHE", str(tmp_path / "cache"))
    for own in ("synthetic:domains=2", "log.csv", "book=a.csv,music=b.csv"):
        fetch(own)  # nothing to fetch; whether it is there is found out later
    with pytest.raises(ConfedError, match=r"amazon-cloth-sport \(domain cloth\) was not found"):
        fetch("amazon-cloth-sport")
    for domain in ("cloth", "sport"):
        file = tmp_path / "amazon-cdrib-cloth-sport" / f"interactions_{domain}.csv.gz"
        file.parent.mkdir(exist_ok=True)
        file.touch()
    fetch("amazon-cloth-sport")
