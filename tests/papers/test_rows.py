from papers.rows import pair, printed, table


def test_a_pair_is_a_mean_and_a_deviation_over_seeds():
    results = [
        {"hr@10": 50.0, "ndcg@10": 30.0, "full_hr@10": 9.0, "full_ndcg@10": 5.0},
        {"hr@10": 54.0, "ndcg@10": 30.0},
    ]
    assert pair(results) == "52.00 ± 2.83 / 30.00 ± 0.00"
    assert pair(results[:1]) == "50.00 / 30.00"
    assert pair(results[:1], prefix="full_") == "9.00 / 5.00"
    assert pair([{"views": {"hr@10": 1.0, "ndcg@10": 2.0}}], lambda r: r["views"]) == "1.00 / 2.00"
    assert pair([]) == "–"


def test_published_pairs_and_gaps():
    assert printed((55.98, 38.77)) == "55.98 / 38.77"
    assert printed(None) == "–"


def test_a_table_in_markdown():
    assert table(["a", "b"], [["1", "2"], ["3", "4"]]) == "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
