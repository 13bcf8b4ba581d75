from confed.cli.progress import is_landmark, live_progress, status
from confed.runs.settings import resolve

SETTINGS = resolve("pfedrec", "x", rounds=40)
LINE = {"round": 4, "loss": 0.5, "views": {"local": {"validation": {"ndcg@10": 12.345}}}}


def test_status_shows_loss_and_the_selecting_metric():
    assert status(LINE, SETTINGS) == "loss 0.5000  validation ndcg@10 12.35 (local)"
    assert status({"round": 1, "loss": None, "views": {}}, SETTINGS) == ""


def test_landmarks_are_about_ten_lines_and_the_last_round():
    assert sum(is_landmark(n, 100) for n in range(1, 101)) == 10
    assert is_landmark(7, 7)


def test_without_a_terminal_lines_are_printed(capsys):
    with live_progress() as listen:
        listen(LINE, SETTINGS)
    assert "pfedrec seed 0: round 4/40" in capsys.readouterr().err
