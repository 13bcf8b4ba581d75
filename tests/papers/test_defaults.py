from papers.cells import load_results
from papers.defaults import recipe, tables
from papers.marks import rendered

from confed.methods.registry import method_named


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_the_rule_is_run_wherever_it_says_something_else_than_the_papers():
    """As the default, or said aloud where that is the papers'."""
    for method in recipe.LEARNED:
        for dataset in recipe.DATASETS:
            cell = recipe.after_cell(method, dataset)
            stays = dataset in method_named(method).defaults
            assert cell in recipe.before() or bool(cell.options) == stays


def test_the_facts_are_those_that_runs_found():
    found = {r["dataset"]: r["provenance"]["settings"].get("facts") for r in load_results(recipe.RESULTS)}
    assert all(recipe.FACTS[dataset] == facts for dataset, facts in found.items() if facts and dataset != recipe.SKEWED)


def test_data_has_titles_of_its_own():
    titles = [tables.title(dataset) for dataset in recipe.DATASETS]
    assert len(set(titles)) == len(titles)
    assert "synthetic, 2500 users, 9000 items, 60 each, skew 1.5" in titles
    assert "douban, music, users with 5" in titles
