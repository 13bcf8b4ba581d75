import io

from rich.console import Console

from confed.cli.tables import domains_table, human_bytes, results, results_table


def summary(**more):
    base = {
        "method": "m",
        "view": "local",
        "dataset": "d",
        "protocol": "paper",
        "rounds": 5,
        "best_round": 3,
        "negatives": 99,
    }
    base |= {"hr@10": 50.0, "ndcg@10": 25.0, "full_hr@10": 5.0, "full_ndcg@10": 2.5, "seconds_per_round": 0.5}
    base |= {"peak_rss_mb": 100.0, "participations": 10, "upload_bytes": 20_000, "download_bytes": 40_000}
    return base | {"published": []} | more


def shown(*summaries, how=results_table):
    console = Console(width=140, file=io.StringIO())
    console.print(how(summaries))
    return console.file.getvalue()


METRICS = ("hr@5", "ndcg@5", "hr@10", "ndcg@10")


def of_domains(**more):
    """Book has enough items for 999 candidates, music has not."""
    music = {f"{ranking}{metric}": 30.0 for ranking in ("", "full_") for metric in METRICS}
    book = {f"{ranking}{metric}": 40.0 for ranking in ("", "neg999_", "full_") for metric in METRICS}
    return summary(domains={"book": book, "music": music}, **more)


def test_published_figures_stand_beside_ours():
    figure = {"hr": 51.0, "ndcg": 26.0, "ranking": "sampled", "source": "s"}
    text = shown(summary(published=[figure]), summary(method="n"))
    assert "50.00 / 25.00" in text and "51.00 / 26.00" in text and "3/5" in text


def test_without_published_figures_there_is_no_such_column():
    assert "published" not in shown(summary())


def test_deviation_over_seeds():
    std = {"hr@10": 1.25, "ndcg@10": 0.5, "full_hr@10": 0.1, "full_ndcg@10": 0.1}
    assert "50.00 ± 1.25 / 25.00 ± 0.50" in shown(summary(std=std, runs=[{}, {}]))


def test_eighty_columns_are_enough():
    popular = {"hr@10": 41.5, "ndcg@10": 23.46, "full_hr@10": 5.0, "full_ndcg@10": 2.5}
    many = {
        "best_round": 58,
        "rounds": 100,
        "seconds_per_round": 12.34,
        "peak_rss_mb": 2048.0,
        "upload_bytes": 2_154_000,
    }
    many |= {"download_bytes": 2_154_000, "popularity": popular}
    console = Console(width=80, file=io.StringIO())
    console.print(
        results_table([summary(method="cofedrec", **many), summary(method="local-only", view="pushed", **many)])
    )
    text = console.file.getvalue()
    rows = [line for line in text.splitlines() if line.startswith(("cofedrec", "local-only", "popularity"))]
    assert [row.split()[0] for row in rows] == ["cofedrec", "local-only", "popularity"], "a row is a line"
    assert "50.00 / 25.00" in rows[0] and "58/100" in rows[0] and rows[0].endswith("215 / 215 kB")
    assert "41.50 / 23.46" in rows[2]


def test_popularity_has_one_row():
    line = {"hr@10": 41.5, "ndcg@10": 23.46, "full_hr@10": 5.0, "full_ndcg@10": 2.5}
    text = shown(summary(method="popularity"), summary(popularity=line))
    assert text.count("popularity") == 1


def test_a_narrow_window_cuts_no_figure_off():
    std = {"hr@10": 1.25, "ndcg@10": 0.5, "full_hr@10": 0.1, "full_ndcg@10": 0.1}
    console = Console(width=80, file=io.StringIO())
    console.print(results_table([summary(std=std, runs=[{}, {}])]))
    text = console.file.getvalue()
    assert "…" not in text and all(part in text for part in ("50.00", "1.25", "25.00", "0.50", "kB"))


def test_every_domain_has_a_row_with_all_its_rankings():
    text = shown(of_domains(), how=domains_table)
    assert [name for name in ("HR@5", "NDCG@5", "HR@10", "NDCG@10") if name in text] == [m.upper() for m in METRICS]
    assert text.count("book") == text.count("music") == 1
    assert text.count("40.00") == 12 and text.count("30.00") == 8
    assert text.count("999 candidates") == 1 and text.count("all items") == 2


def test_methods_stand_together_in_a_domain():
    text = shown(of_domains(method="one"), of_domains(method="two"), how=domains_table)
    rows = [line.split("│")[1:3] for line in text.splitlines() if " 99 candidates" in line]
    assert [(domain.strip(), method.strip()) for domain, method in rows] == [
        ("book", "one"), ("book", "two"), ("music", "one"), ("music", "two"),
    ]  # fmt: skip


def test_domains_over_seeds_and_without_a_cutoff():
    base = of_domains()
    for metrics in base["domains"].values():
        metrics.pop("hr@5")
    spread = {domain: dict.fromkeys(metrics, 1.5) for domain, metrics in base["domains"].items()}
    text = shown({**base, "std": {"domains": spread}}, how=domains_table)
    assert "40.00 ± 1.50" in text and "–" in text


def test_the_domains_stand_below_their_mean_where_there_are_any():
    assert "Every domain" in shown(of_domains(), how=results) and "the mean" in " ".join(
        shown(of_domains(), how=results).split()
    )
    assert "domain" not in shown(summary(), how=results)


def test_traffic_is_per_client_and_round():
    assert "2 / 4 kB" in shown(summary())


def test_human_bytes():
    assert [human_bytes(n) for n in (0, 999, 1500, 2.5e6, 3e9, 4e12)] == [
        "0 B", "999 B", "1.5 kB", "2.5 MB", "3.0 GB", "4000.0 GB",
    ]  # fmt: skip
