"""The command line as a user meets it."""

import json
import math
import os
import signal
import subprocess
import sys
import time

import pytest

NOT_COMPARED = {"seconds", "seconds_per_round", "peak_rss_mb", "run_dir"}
TINY = "synthetic:users=40,items=80,seed=2"
FEW = ["--set", "negatives=20", "--set", "dim=4"]


def test_run_then_recommend(result, failure, tmp_path):
    summary = result("run", "pfedrec", TINY, "--rounds", 3, *FEW)
    assert summary["rounds"] == 3
    folder = tmp_path / summary["run_dir"]
    assert {"config.toml", "metrics.jsonl", "summary.json", "checkpoint"} <= {p.name for p in folder.iterdir()}
    answer = result("recommend", folder, "--user", 1, "-k", 4)
    scores = [item["score"] for item in answer["items"]]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)
    said = failure("recommend", folder, "--user", "nobody")
    assert "user 'nobody' is nobody whom this run knows" in said
    assert "--user" not in said.partition("nobody whom")[2], "whoever else is in the data is not told"


def test_noise_is_reported_and_recommendations_name_their_domain(confed, result, tmp_path):
    data = "synthetic:domains=2,users=40,items=60,interactions_per_user=10"
    noise = ("--set", "upload_clip=2", "--set", "upload_noise=0.5", "--set", "dim=4")
    few = ("--set", "negatives=15", "--set", "cutoffs=5,10", "--set", "more_negatives=20")
    code, out, err = confed("run", "fppdm", data, "--rounds", 1, "--folder", tmp_path / "noisy", *noise, *few)
    assert code == 0, err
    assert "noise on what a sent: deviation 1 on every number" in " ".join(out.split())
    assert "for one person's row in one company's upload" in " ".join(out.split())
    assert "ε = 24.4 in one round, ε = 24.4 in all 1, at δ = 1e-05" in " ".join(out.split())
    assert result("recommend", tmp_path / "noisy", "--user", 1, "--domain", "b", "-k", 2)["domain"] == "b"


def test_noise_on_what_people_send_is_reported_too(confed, tmp_path):
    noise = ("--set", "upload_clip=2", "--set", "upload_noise=0.5", "--set", "dim=4")
    few = ("--set", "negatives=15", "--set", "cutoffs=5,10")
    data = "synthetic:users=120,items=150"
    code, out, err = confed("run", "fedmf", data, "--rounds", 1, "--folder", tmp_path / "a", *noise, *few)
    assert code == 0, err
    assert "deviation 1 on every number of a client's change, clipped to 2" in " ".join(out.split())
    assert confed("report", tmp_path / "a")[0] == 0


def test_human_output_has_the_table_and_progress_goes_to_stderr(confed):
    code, out, err = confed("run", "fedmf", TINY, "--rounds", 2, *FEW)
    assert code == 0
    assert "HR / NDCG" in out and "fedmf" in out
    assert "round 2/2" in err and "validation ndcg@10" in err


def test_a_run_that_ends_below_popularity_says_so(confed):
    data = "synthetic:users=120,items=300,interactions_per_user=12,skew=1.5"
    large_steps = ("--rounds", 2, "--set", "item_rate_factor=5000", "--set", "dim=4")
    for words in (["run", "fedmf", data], ["compare", "popularity", "fedmf", "--dataset", data]):
        code, out, err = confed(*words, *large_steps)
        assert code == 0, err
        said = " ".join(out.split())
        assert said.count("ends below popularity") == 1 and "fedmf ends below popularity: HR@10" in said
        assert "what to try: " in said and "such as ease" in said


def test_several_domains_have_a_row_each(confed):
    data = "synthetic:domains=2,users=40,items=60"
    few = ["--set", "negatives=15", "--set", "more_negatives=20", "--set", "cutoffs=5,10"]
    code, out, err = confed("run", "fppdm++", data, "--rounds", 1, *few, "--set", "dim=4")
    assert code == 0 and "round 1/1" in err
    assert out.count("20 candidates") == 2 and "NDCG@5" in out
    assert "upload of every domain in a round: a " in out
    code, out, _ = confed("compare", "popularity", "ease", "--dataset", data, *few)
    assert code == 0 and out.count("all items") == 5  # two methods in two domains, and the caption


def test_several_seeds_have_mean_and_deviation(result):
    summary = result("run", "popularity", TINY, "--seeds", 3, "--set", "negatives=20")
    values = [run["hr@10"] for run in summary["runs"]]
    assert [run["seed"] for run in summary["runs"]] == [0, 1, 2]
    assert summary["mean"]["hr@10"] == summary["hr@10"] == pytest.approx(sum(values) / 3)
    assert summary["mean"]["views"]["global"]["hr@10"] == summary["hr@10"]
    assert summary["std"]["hr@10"] == pytest.approx((sum((v - sum(values) / 3) ** 2 for v in values) / 2) ** 0.5)


HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", f"dim={HUGE}"], "dim = '999"),
        (["--set", "dim=1000000000000"], "dim = 1000000000000: should be at most 2,147,483,647"),
        (["--set", "learning_rate=nan"], "learning_rate = nan: input should be a finite number"),
        (["--set", "learning_rate=inf"], "learning_rate = inf: input should be a finite number"),
        (["--set", "learning_rate=1e308"], "learning_rate = 1e+308: should be at most 1,000,000,000,000,000"),
        (["--set", "dim=1000000000"], "clients keep takes 160.0 GB and this machine has"),
        (["--config", "huge.toml"], "huge.toml: not valid TOML"),
        (["--seed", HUGE], "is not a valid int"),
        (["--checkpoint-seconds", "nan"], "checkpoint_seconds = nan"),
    ],
)
def test_absurd_numbers_are_refused(arguments, message, confed, tmp_path):
    (tmp_path / "huge.toml").write_text(f"seed = {HUGE}\n")
    code, _, err = confed("run", "fedmf", TINY, "--rounds", 1, *arguments)
    said = " ".join(err.replace("│", " ").split())
    assert code == 2 and message in said, said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seed", -3],
        ["--seed", 10**30],
        ["--chunk", 10**18],
        ["--eval-every", 10**18],
        ["--eval-users", 10**18],
        ["--set", f"batch_size={10**9}"],
    ],
)
def test_strange_numbers_are_numbers(arguments, result):
    assert math.isfinite(result("run", "fedmf", TINY, "--rounds", 2, *FEW, *arguments)["hr@10"])


def test_as_many_rounds_as_there_will_never_be(result):
    assert result("run", "fedmf", TINY, "--rounds", 10**18, "--patience", 1, *FEW)["rounds"] < 1000


def test_compare_is_one_object_with_one_summary_a_method(result):
    answer = result("compare", "popularity", "ease", "--dataset", TINY, "--set", "negatives=20")
    assert [summary["method"] for summary in answer["methods"]] == ["popularity", "ease"]


def test_config_file_and_command_line(result, tmp_path):
    (tmp_path / "run.toml").write_text(
        f'method = "pfedrec"\ndataset = "{TINY}"\nprotocol = "paper"\nrounds = 5\nseed = 4\n'
        "[options]\nnegatives = 19\ndim = 4\nbatch_size = 32\n"
    )
    summary = result("run", "--config", "run.toml", "--rounds", 2, "--set", "dim=3")
    assert (summary["protocol"], summary["rounds"], summary["seed"]) == ("paper, negatives=19", 2, 4)
    config = (tmp_path / summary["run_dir"] / "config.toml").read_text()
    assert "batch_size = 32" in config and "dim = 3" in config


def test_killed_and_resumed_ends_like_an_unbroken_run(result, tmp_path):
    """SIGKILL in the middle: no handler can run."""
    arguments = ["run", "pfedrec", TINY, "--rounds", "60", *FEW, "--checkpoint-seconds", "0"]
    unbroken = result(*arguments, "--folder", "whole")
    command = [sys.executable, "-m", "confed.cli.main", *arguments, "--folder", "broken"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_for_rounds(tmp_path / "broken", 10)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "broken" / "summary.json").exists()
    resumed = result("run", "--resume", "broken")
    assert {k: v for k, v in resumed.items() if k not in NOT_COMPARED} == {
        k: v for k, v in unbroken.items() if k not in NOT_COMPARED
    }


def wait_for_rounds(folder, rounds):
    metrics, deadline = folder / "metrics.jsonl", time.monotonic() + 120
    while time.monotonic() < deadline and not (metrics.exists() and metrics.read_text().count("\n") >= rounds):
        time.sleep(0.005)


def test_an_interrupt_says_how_to_go_on(confed, monkeypatch):
    from confed.federations.federated import Federated

    def interrupted(self, number, views):
        raise KeyboardInterrupt

    monkeypatch.setattr(Federated, "round", interrupted)
    code, _, err = confed("run", "pfedrec", TINY, *FEW, "--folder", "a")
    assert code == 130
    assert "stopped at once; `confed run --resume a` goes on from round 1" in " ".join(err.split())


@pytest.mark.parametrize(
    "place",
    [[], pytest.param(["--engine", "processes", "--workers", "2"], marks=pytest.mark.apart)],
    ids=["here", "apart"],
)
def test_ctrl_c_ends_and_saves_the_round(tmp_path, result, place):
    """A checkpoint only at the end, so that what is saved is saved because of the signal."""
    options = ["--rounds", 200, *FEW, "--checkpoint-seconds", 1e9]
    unbroken = result("run", "pfedrec", TINY, *options, "--folder", "whole")
    options += place
    command = [
        sys.executable,
        "-m",
        "confed.cli.main",
        "run",
        "pfedrec",
        TINY,
        *map(str, options),
        "--folder",
        "broken",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for_rounds(tmp_path / "broken", 3)
    process.send_signal(signal.SIGINT)
    said = " ".join(process.communicate(timeout=60)[1].split())
    assert process.returncode == 130
    done = len((tmp_path / "broken" / "metrics.jsonl").read_text().splitlines())
    assert f"stopped after round {done} of 200; `confed run --resume broken` goes on from round {done + 1}" in said
    assert "Ctrl-C once more stops at once" in said
    assert not (tmp_path / "broken" / "stop").exists()
    resumed = result("run", "--resume", "broken")
    assert {k: v for k, v in resumed.items() if k not in NOT_COMPARED} == {
        k: v for k, v in unbroken.items() if k not in NOT_COMPARED
    }


def test_a_run_that_is_finished_says_so(confed, result):
    first = result("run", "popularity", TINY, *FEW[:2], "--folder", "a")
    code, out, err = confed("run", "--resume", "a", "--json")
    assert code == 0 and json.loads(out) == first
    assert "a: the run is finished; --rounds, with more than its 1, goes on with it" in " ".join(err.split())


def test_a_changed_switch_is_in_the_label_and_hides_published_figures(result):
    leaking = result("run", "popularity", TINY, "--set", "negatives=20", "--set", "neg_pool=unseen")
    assert leaking["protocol"] == "strict, neg_pool=unseen, negatives=20"


def test_compare_gives_an_option_to_the_methods_that_know_it(result, tmp_path):
    answer = result("compare", "pfedrec", "popularity", "--dataset", TINY, "--rounds", 2, *FEW)
    assert [s["rounds"] for s in answer["methods"]] == [2, 1]
    configs = [(tmp_path / s["run_dir"] / "config.toml").read_text() for s in answer["methods"]]
    assert ["dim = 4" in config for config in configs] == [True, False]


def test_other_data_under_the_same_name_is_refused(result, failure, tmp_path):
    rows = [f"{u},{i},{i}" for u in range(30) for i in range(u % 5, 60, 5)]
    own = tmp_path / "own.csv"
    own.write_text("\n".join(["user,item,timestamp", *rows]))
    result("run", "pfedrec", "own.csv", "--rounds", 2, "--folder", "a", *FEW)
    before = result("recommend", "a", "--user", "7")["items"]
    own.rename(tmp_path / "old.csv")
    assert "say with --data where it is now" in failure("recommend", "a", "--user", "7")
    own.write_text("\n".join(["user,item,timestamp", *rows, "7,59,99"]))
    said = failure("recommend", "a", "--user", "7")
    assert "own.csv is not the data this run was started with" in said and "a run keeps no copy" in said
    assert "`confed recommend own.csv` does" in said and "--data" in said
    assert "start a new run, or say with --data" in failure("run", "--resume", "a", "--rounds", 3)
    assert result("recommend", "a", "--user", "7", "--data", "old.csv")["items"] == before
    assert "nothing was learned" in failure("similar", "a", "3", "--data", "old.csv"), "the data is found"
    said = failure("recommend", "a", "--user", "7", "--data", "own.csv")
    assert "--data own.csv is not what the run was trained on, either" in said
    for line in (("recommend", "own.csv", "--user", "7"), ("run", "pfedrec", "own.csv")):
        assert "--data is for a run whose data has changed" in failure(*line, "--data", "x")
    assert result("run", "--resume", "a", "--rounds", 3, "--data", "old.csv")["rounds"] == 3
    assert result("run", "--resume", "a", "--rounds", 4)["rounds"] == 4, "from then on it is known where the data is"


def test_no_whole_path_is_written_down(result, tmp_path, monkeypatch):
    """A folder that is shown around says nothing about the machine; it finds its data, also from elsewhere."""
    rows = [f"{u},{i},{i}" for u in range(30) for i in range(u % 5, 60, 5)]
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "own.csv").write_text("\n".join(["user,item,timestamp", *rows]))
    result("run", "fedmf", tmp_path / "shelf" / "own.csv", "--rounds", 2, "--folder", tmp_path / "a", *FEW)
    result("report", tmp_path / "a")
    for file in ("config.toml", "summary.json", "metrics.jsonl", "report.html", "checkpoint/manifest.json"):
        assert str(tmp_path) not in (tmp_path / "a" / file).read_text("utf-8")
    assert 'source = "./../shelf/own.csv"' in (tmp_path / "a" / "config.toml").read_text()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert result("recommend", tmp_path / "a", "--user", "7")["items"]


@pytest.mark.parametrize("beside", [["--seed", 0], ["--out", "x"], ["--checkpoint-seconds", 0], ["--set", "dim=4"]])
def test_resume_takes_nothing_else(failure, beside):
    beside_it = "only --rounds, --engine, --workers, --address, --data and --json may stand beside it"
    assert beside_it in failure("run", "--resume", "a", *beside)


def test_the_record_of_a_run_is_no_config(result, failure):
    result("run", "popularity", TINY, *FEW[:2], "--folder", "a")
    assert "record of a run" in failure("run", "--config", "a/config.toml")


def test_every_run_folder_is_named(confed):
    _, out, _ = confed("run", "popularity", TINY, *FEW[:2], "--seeds", 2, "--out", "here")
    assert out.count("run folder: here") == 2
    assert "99 sampled" not in out and "20 sampled" in out


def test_resume_with_more_rounds(result, failure):
    result("run", "fedmf", TINY, "--rounds", 2, *FEW, "--folder", "a")
    longer = result("run", "--resume", "a", "--rounds", 4)
    straight = result("run", "fedmf", TINY, "--rounds", 4, *FEW, "--folder", "b")
    assert longer["hr@10"] == straight["hr@10"] and longer["best_round"] == straight["best_round"]
    assert "4 rounds are done already, 3 are asked for" in failure("run", "--resume", "a", "--rounds", 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "pfedrek", TINY], "unknown method 'pfedrek': did you mean pfedrec"),
        (["run", "pfedrec", "ml-10k"], "unknown dataset 'ml-10k': did you mean ml-100k"),
        (
            ["run", "pfedrec", TINY, "--set", "batchsize=3"],
            "unknown option 'batchsize': did you mean batch_size",
        ),
        (["run", "pfedrec", TINY, "--set", "batch_size"], "key=value"),
        (["run", "pfedrec", TINY, "--set", "batch_size=no"], "batch_size = 'no'"),
        (
            ["run", "pfedrec", TINY, "--protocol", "strickt"],
            "unknown protocol 'strickt': did you mean strict",
        ),
        (["run", "pfedrec", TINY, "--set", "negatives=98"], "lower `negatives`"),
        (
            ["run", "pfedrec", TINY, *FEW, "--set", "cutoffs=30"],
            "K = 30 is larger than the 21 sampled candidates",
        ),
        (["run", "pfedrec", TINY, *FEW, "--set", "more_negatives=5000"], "more_negatives = 5000: there is somebody"),
        (["run", "pfedrec", TINY, *FEW, "--set", "view=pushed"], "view = 'pushed'"),
        (["run", "pfedrec", TINY, *FEW, "--engine", "cluster"], "engine = 'cluster'"),
        (["run", "pfedrec"], "confed run METHOD DATASET"),
        (["run", "--resume", "."], "not a run folder"),
        (["run", "pfedrec", TINY, "--resume", "x"], "--resume takes the run's own settings"),
        (["run", "--resume", "x", "--seed", "3"], "--resume takes the run's own settings"),
        (["run", "pfedrec", TINY, *FEW, "--set", "cutoffs=0"], "cutoffs.0 = 0"),
        (["run", "pfedrec", TINY, *FEW, "--folder", "/dev/null/x"], "cannot make a run folder there"),
        (["compare", "pfedrec", "ease", "--dataset", TINY, "--set", "local_epoch=2"], "did you mean local_epochs"),
        (["compare", "popularity", "eas", "--dataset", TINY], "unknown method 'eas': did you mean ease"),
        (["run", "local-only", "synthetic:users=300000,items=9000"], "GB and this machine has"),
        (["run", "pfedrec", TINY, "--seeds", "2", "--folder", "x"], "--folder holds one run"),
        (["run", "--config", "missing.toml"], "missing.toml: no such file"),
        (["run", "pfedrec", TINY, "--bogus"], "No such option"),
        (["recommend", ".", "--user", "1"], "neither a run folder nor data"),
    ],
)
def test_bad_input_says_what_and_leaves_nothing_behind(arguments, message, failure, tmp_path):
    assert message in failure(*arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ['seed = "1"', "options = 3", "protocol = 1", 'colour = "red"'])
def test_bad_config_files(text, failure, tmp_path):
    (tmp_path / "run.toml").write_text(f'{text}\nmethod = "pfedrec"\ndataset = "{TINY}"\n')
    assert "run.toml" in failure("run", "--config", "run.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("who,item\n1,2\n", "user"),
        ("user,item,rating\n1,2,3\n1,3,great\n", "own.csv, line 3"),
        ("", "empty"),
        ("user,item,timestamp\n1,1,1\n1,2,2\n2,1,1\n2,2,2\n", "nobody has 3 items"),
    ],
)
def test_bad_own_data(content, message, failure, tmp_path):
    (tmp_path / "own.csv").write_text(content)
    assert message in failure("run", "pfedrec", "own.csv", *FEW)
    assert [p.name for p in tmp_path.iterdir()] == ["own.csv"]


def test_a_run_for_use_measures_nothing_and_says_so(confed, result, tmp_path):
    result("run", "pfedrec", TINY, "--rounds", 3, *FEW, "--folder", "measured")
    code, out, err = confed("run", "--like", "measured", "--no-holdout", "--folder", "whole")
    assert code == 0, err
    assert "protocol everything" in out and "HR@10 " not in out.partition("defaults:")[2]
    assert result("recommend", "whole", "--user", 1)["items"]
    assert confed("report", "whole")[0] == 0
    page = (tmp_path / "whole" / "report.html").read_text("utf-8")
    assert "nothing was measured but the loss" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "pfedrec", TINY, "--no-holdout"], "nothing can choose the round: say --rounds, or --like RUN"),
        (["run", "pfedrec", TINY, "--no-holdout", "--protocol", "paper"], "--protocol paper holds something out"),
        (
            ["run", "fedmf", "--like", "measured"],
            "--like leads to a run of popularity, not of fedmf: leave one of them out",
        ),
        (["run", "--like", "nowhere"], "nowhere: not a run folder"),
        (["run", "pfedrec", TINY, "--no-holdout", "--rounds", "2", "--patience", "3"], "--patience does nothing where"),
        (["run", "--resume", "measured", "--no-holdout"], "--resume takes the run's own settings"),
    ],
)
def test_mistakes_about_holdout(arguments, message, result, failure):
    result("run", "popularity", TINY, *FEW[:2], "--folder", "measured")
    assert message in failure(*arguments)


def test_like_reads_the_file_as_the_other_run_did(result, confed, tmp_path):
    rows = [f"{u},{i}" for u in range(30) for i in range(u % 5, 60, 5)]
    (tmp_path / "odd.csv").write_text("\n".join(["who,what", *rows]))
    columns = ["--user-column", "who", "--item-column", "what"]
    result("run", "popularity", "odd.csv", *columns, "--seed", 4, "--folder", "a", *FEW[:2])
    again = result("run", "--like", "a", "--folder", "b")
    assert again["seed"] == 4 and again["users"] == 30


def test_ctrl_c_in_the_last_round_of_a_seed_stops_before_the_next(confed, monkeypatch, tmp_path):
    from confed.federations.federated import Federated

    train = Federated.round

    def interrupted(self, number, views):
        if number == 2:
            signal.raise_signal(signal.SIGINT)
        return train(self, number, views)

    monkeypatch.setattr(Federated, "round", interrupted)
    code, _, err = confed("run", "pfedrec", TINY, *FEW, "--rounds", 2, "--seeds", 3, "--out", "runs")
    assert code == 130 and "stopped after seed 0, whose run is finished" in " ".join(err.split())
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "summary.json").exists() and not (run / "stop").exists()
