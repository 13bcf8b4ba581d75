import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from confed.tensors import joined, load_tensors, part_of, save_tensors

TYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool]
tensors = st.builds(
    lambda shape, dtype: torch.arange(int(torch.tensor(shape).prod()) if shape else 1).reshape(shape).to(dtype),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.sampled_from(TYPES),
)


@given(st.dictionaries(st.text(min_size=1, max_size=8), tensors, max_size=5))
def test_the_library_reads_what_we_write(tmp_path_factory, named):
    path = tmp_path_factory.mktemp("t") / "file"
    save_tensors(path, named, {"a": "b"})
    ours, metadata = load_tensors(path)
    theirs = load_file(path)
    assert metadata == {"a": "b"}
    assert ours.keys() == theirs.keys() == named.keys()
    for name, value in named.items():
        for read in (ours[name], theirs[name]):
            assert read.dtype == value.dtype and torch.equal(read, value)


def test_a_view_is_written_as_what_it_shows(tmp_path):
    table = torch.arange(12.0).view(3, 4)
    save_tensors(tmp_path / "f", {"turned": table.T, "part": table[1:]}, {})
    read, _ = load_tensors(tmp_path / "f")
    assert torch.equal(read["turned"], table.T) and torch.equal(read["part"], table[1:])


def test_a_torn_file_is_refused(tmp_path):
    save_tensors(tmp_path / "f", {"x": torch.zeros(100)}, {})
    data = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(data[:-8])
    with pytest.raises(Exception, match=r"(?i)incomplete|invalid|metadata"):
        load_tensors(tmp_path / "f")


def test_a_part_is_not_another_whose_name_begins_alike():
    one, other = torch.zeros(1), torch.ones(1)
    assert part_of({"a/x": one, "a/b/x": other, "ab/x": other, "x": other}, "a") == {"x": one, "b/x": other}


def test_joined_parts_come_apart_again():
    parts = {"a": {"x": torch.zeros(1)}, "b": {"x": torch.ones(1), "y": torch.ones(2)}}
    assert {part: part_of(joined(parts), part) for part in parts} == parts
