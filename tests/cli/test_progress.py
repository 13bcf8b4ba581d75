import pytest

from confed.cli.progress import Landmarks, fetch, live_progress, status
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


def printed(rounds, seconds):
    """The rounds of which a line is printed, if each takes so many seconds."""
    now = [0.0]
    landmarks, found = Landmarks(lambda: now[0]), []
    for number in range(1, rounds + 1):
        now[0] += seconds
        if landmarks.has(number, rounds):
            found.append(number)
    return found


def test_a_quick_run_has_about_ten_lines_and_the_last_round():
    assert printed(100, 0.1) == list(range(10, 101, 10))
    assert printed(7, 0.1) == [1, 2, 3, 4, 5, 6, 7]


def test_a_slow_run_is_heard_of_every_half_minute():
    assert printed(100, 6.0)[:5] == [5, 10, 15, 20, 25]
    assert printed(100, 45.0) == list(range(1, 101))
    assert printed(100, 8.0)[:5] == [4, 8, 10, 14, 18], "a tenth begins the half minute anew"


def test_without_a_terminal_lines_are_printed(capsys):
    now = [0.0]
    with live_progress(lambda: now[0]) as listen:
        listen(LINE, SETTINGS)
        listen({**LINE, "round": 5}, SETTINGS)
        now[0] = 31.0
        listen({**LINE, "round": 6}, SETTINGS)
    told = capsys.readouterr().err
    assert "pfedrec seed 0: round 4/40" in told and "round 5/40" not in told and "round 6/40" in told


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
