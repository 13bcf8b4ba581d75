"""The page and the README show the committed results, and every method has its row."""

import pytest
from papers.marks import rendered
from papers.methods import recipe, tables

from confed.methods.registry import METHODS


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_pages_show_the_committed_results(page):
    text = page.read_text("utf-8")
    assert text == rendered(text, tables.TABLES, tables.all_results())


def test_every_method_of_one_domain_is_there_but_controls():
    wanted = {n for n, m in METHODS.items() if m.domains != "several" and m.kind in ("federated", "central")}
    assert wanted == set(recipe.METHODS)


def test_cells_have_names_of_their_own():
    names = [cell.name for cell in recipe.cells()]
    assert len(set(names)) == len(names)
