from papers.cells import load_results
from papers.defaults import recipe, tables
from papers.marks import rendered

from confed.methods.registry import method_named


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_the_rule_is_run_wherever_the_papers_factor_stays():
    for method in recipe.LEARNED:
        stays = method_named(method).defaults.keys() & set(recipe.DATASETS)
        said = {dataset for dataset in recipe.DATASETS if recipe.after_cell(method, dataset).options}
        assert said == stays <= recipe.FACTS.keys()


def test_data_has_titles_of_its_own():
    titles = [tables.title(dataset) for dataset in recipe.DATASETS]
    assert len(set(titles)) == len(titles)
    assert "synthetic, 2500 users, 9000 items, 60 each, skew 1.5" in titles
    assert "douban, music, users with 5" in titles
