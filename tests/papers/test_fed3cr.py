from papers.cells import load_results
from papers.fed3cr import recipe, tables
from papers.fed3cr.figures import drawn
from papers.marks import rendered


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_at_most_sixteen_trials_were_searched():
    assert len(recipe.TRIALS) <= 16


def test_pictures_show_what_was_run():
    result = {"method": "fed3cr", "variant": "C1 and La", "protocol": "paper", "dataset": "ml-100k", "hr@10": 50.0}
    pictures = drawn([result])
    assert pictures["figure-4"].data[0].y == (50.0,)
    assert set(pictures) == {"figure-4", "figure-8", "figure-9"}
