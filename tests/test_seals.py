import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from confed.errors import DamagedError
from confed.seals import Sealed, digest_of, sealed_json, unsealed_json, with_seal, without_seal

HERE = Path("some.file")
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
contents = st.dictionaries(st.text().filter(lambda name: name != "sha256"), plain, max_size=5)


@given(contents)
def test_json_comes_back(content):
    assert unsealed_json(sealed_json(content), HERE) == content


@given(contents, st.data())
def test_json_that_says_something_else_is_refused(content, data):
    told = json.loads(sealed_json(content))
    name = data.draw(st.sampled_from(sorted(told)))
    changed = {**told, name: [told[name]]} if data.draw(st.booleans()) else {k: v for k, v in told.items() if k != name}
    with pytest.raises(DamagedError, match=r"some\.file: is not what was written"):
        unsealed_json(json.dumps(changed), HERE)


@pytest.mark.parametrize("text", ["", "[]", "{", '"a"', "null", "[" * 100_000])
def test_what_is_no_sealed_json_is_refused(text):
    with pytest.raises(DamagedError, match="no JSON with a digest"):
        unsealed_json(text, HERE)


def test_numbers_that_json_has_no_word_for_come_back():
    assert unsealed_json(sealed_json({"worst": -math.inf}), HERE) == {"worst": -math.inf}


@given(st.text())
def test_text_comes_back(text):
    assert without_seal(with_seal(text), HERE) == text


@given(st.text(), st.text(min_size=1), st.data())
def test_text_that_was_changed_is_refused(text, more, data):
    sealed = with_seal(text)
    place = data.draw(st.integers(0, len(sealed)))
    with pytest.raises(DamagedError, match=r"its SHA-256 is another|has no digest"):
        without_seal(sealed[:place] + more + sealed[place:], HERE)
    with pytest.raises(DamagedError, match="has no digest: it was cut, or written by a confed before"):
        without_seal(text.replace("#", ""), HERE)


def test_a_file_is_checked_where_it_is(tmp_path):
    sealed = Sealed("a", 3, digest_of(b"abc"))
    with pytest.raises(DamagedError, match="cannot be read"):
        sealed.check(tmp_path)
    (tmp_path / "a").write_bytes(b"abc")
    assert sealed.check(tmp_path) == tmp_path / "a"
    (tmp_path / "a").write_bytes(b"abd")
    with pytest.raises(DamagedError, match="its SHA-256 is another"):
        sealed.check(tmp_path)
    (tmp_path / "a").write_bytes(b"ab")
    with pytest.raises(DamagedError, match="has 2 bytes, 3 were written"):
        sealed.check(tmp_path)
