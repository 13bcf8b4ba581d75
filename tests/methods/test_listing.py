from confed.methods.listing import FILE, listing, ours


def test_the_file_says_what_the_methods_say():
    assert FILE.read_text("utf-8") == ours(), "python -m confed.methods.listing writes it anew"


def test_the_list_has_a_line_a_method():
    rows, problems = listing()
    assert {row["name"]: row["kind"] for row in rows}["cofedrec"] == "federated"
    assert problems == []
