import io

from rich.console import Console

from confed.cli.tables import human_bytes, results_table


def summary(**more):
    base = {"method": "m", "view": "local", "dataset": "d", "protocol": "paper", "rounds": 5, "best_round": 3}
    base |= {"hr@10": 50.0, "ndcg@10": 25.0, "full_hr@10": 5.0, "full_ndcg@10": 2.5, "seconds_per_round": 0.5}
    base |= {"peak_rss_mb": 100.0, "participations": 10, "upload_bytes": 20_000, "download_bytes": 40_000}
    return base | {"published": []} | more


def shown(*summaries):
    console = Console(width=140, file=io.StringIO())
    console.print(results_table(summaries))
    return console.file.getvalue()


def test_published_figures_stand_beside_ours():
    figure = {"hr": 51.0, "ndcg": 26.0, "ranking": "sampled", "source": "s"}
    text = shown(summary(published=[figure]), summary(method="n"))
    assert "50.00 / 25.00" in text and "51.00 / 26.00" in text and "3 of 5" in text


def test_without_published_figures_there_is_no_such_column():
    assert "published" not in shown(summary())


def test_deviation_over_seeds():
    std = {"hr@10": 1.25, "ndcg@10": 0.5, "full_hr@10": 0.1, "full_ndcg@10": 0.1}
    assert "50.00 ± 1.25 / 25.00 ± 0.50" in shown(summary(std=std, runs=[{}, {}]))


def test_traffic_is_per_client_and_round():
    assert "2.0 kB / 4.0 kB" in shown(summary())


def test_human_bytes():
    assert [human_bytes(n) for n in (0, 999, 1500, 2.5e6, 3e9, 4e12)] == [
        "0 B", "999 B", "1.5 kB", "2.5 MB", "3.0 GB", "4000.0 GB",
    ]  # fmt: skip
