import pytest
from papers.cells import load_results
from papers.fed3cr import recipe, tables
from papers.fed3cr.figures import drawn
from papers.marks import rendered

from confed.methods.registry import method_named


def test_the_docs_show_the_committed_results():
    text = tables.DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in tables.TABLES)
    assert text == rendered(text, tables.TABLES, load_results(recipe.RESULTS))


def test_every_result_belongs_to_a_cell_of_the_recipe():
    cells = {cell.path(recipe.RESULTS).name for part in recipe.PARTS.values() for cell in part()}
    assert {path.name for path in recipe.RESULTS.glob("*.json")} <= cells


def test_cells_have_names_of_their_own():
    names = [cell.name for part in recipe.PARTS.values() for cell in part()]
    assert len(names) == len(set(names))
    assert all(name.isascii() for name in names)


def test_at_most_sixteen_trials_were_searched():
    assert len(recipe.TRIALS) <= 16


@pytest.mark.parametrize(
    "cell", [cell for part in recipe.PARTS.values() for cell in part()], ids=lambda cell: cell.name
)
def test_every_cell_has_valid_options(cell):
    method_named(cell.method).config(cell.dataset, cell.options)


def test_pictures_show_what_was_run():
    result = {"method": "fed3cr", "variant": "C1 and La", "protocol": "paper", "dataset": "ml-100k", "hr@10": 50.0}
    pictures = drawn([result])
    assert pictures["figure-4"].data[0].y == (50.0,)
    assert set(pictures) == {"figure-4", "figure-8", "figure-9"}
