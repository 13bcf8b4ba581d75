import pytest

from confed.errors import ConfedError
from confed.toml import parse_option, read_toml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("mean", "mean"),
        ("[1, 2]", [1, 2]),
        ('"3"', "3"),
        ("a=b", "a=b"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
        ("3\nother = 4", "3\nother = 4"),
    ],
)
def test_parse_option(text, value):
    assert parse_option(f"key={text}") == ("key", value)


@pytest.mark.parametrize("text", ["key", "=3", ""])
def test_parse_option_wants_a_pair(text):
    with pytest.raises(ConfedError, match="key=value"):
        parse_option(text)


def test_bad_toml_names_the_file(tmp_path):
    path = tmp_path / "run.toml"
    with pytest.raises(ConfedError, match=r"run\.toml: no such file"):
        read_toml(path)
    path.write_text("method = \n")
    with pytest.raises(ConfedError, match=r"run\.toml: not valid TOML.*line 1"):
        read_toml(path)


@pytest.mark.parametrize("text", [f"seed = {'9' * 5000}", f"seed = {'[' * 5000}", "seed = '\ud800'"])
def test_numbers_and_lists_beyond_all_bounds(text, tmp_path):
    (tmp_path / "run.toml").write_text(text, "utf-8", errors="surrogatepass")
    with pytest.raises(ConfedError, match=r"run\.toml: not valid TOML"):
        read_toml(tmp_path / "run.toml")


def test_a_folder_is_no_toml_file(tmp_path):
    with pytest.raises(ConfedError, match="cannot be read as a file"):
        read_toml(tmp_path)
