from benchmarks.tables import DOCS, TABLES, load
from papers.marks import rendered


def test_the_docs_say_what_was_measured():
    text = DOCS.read_text("utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in TABLES)
    assert text == rendered(text, TABLES, load())
