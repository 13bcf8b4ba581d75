import hashlib

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from confed.errors import MessageError
from confed.messages import wire
from confed.messages.wire import Field, Schema, decode, encode
from confed.tensors import contents, header

SCHEMA = Schema(
    "upload",
    {
        "clients": Field(torch.int64, ("clients",), distinct=True),
        "table": Field(torch.float32, ("clients", "items", 2)),
        "group": Field(torch.int64, ("clients",), least=-1, below="items"),
        "note": Field(torch.uint8, (3,), optional=True),
    },
    {"items": 4},
)


def tensors(**changed):
    fine = {
        "clients": torch.tensor([7, 9]),
        "table": torch.arange(16.0).view(2, 4, 2),
        "group": torch.tensor([-1, 3]),
        "note": torch.tensor([1, 2, 3], dtype=torch.uint8),
    }
    return {name: tensor for name, tensor in (fine | changed).items() if tensor is not None}


def refused(changed, schema=SCHEMA, kind="upload"):
    with pytest.raises(MessageError) as error:
        decode(encode(kind, tensors(**changed)), schema)
    return str(error.value)


def test_what_was_written_is_read():
    for message in (tensors(), tensors(note=None)):
        found = decode(encode("upload", message), SCHEMA)
        assert found.keys() == message.keys()
        assert all(
            torch.equal(found[name], tensor) and found[name].dtype == tensor.dtype for name, tensor in message.items()
        )


def test_the_same_tensors_give_the_same_bytes():
    assert encode("upload", tensors()) == encode("upload", dict(reversed(tensors().items())))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": None}, "missing: 'table'"),
        ({"user": torch.zeros(1)}, "not declared: 'user'"),
        ({"table": torch.zeros(2, 4, 2, dtype=torch.float64)}, "'table' is F64, declared is F32"),
        ({"table": torch.zeros(2, 5, 2)}, "'table' has shape [2, 5, 2], declared is [clients = 2, items = 4, 2]"),
        ({"table": torch.zeros(2, 4)}, "'table' has shape [2, 4], declared is [clients = 2, items = 4, 2]"),
        ({"group": torch.zeros(3, dtype=torch.int64)}, "'group' has shape [3], declared is [clients = 2]"),
        ({"clients": torch.tensor([7, 7])}, "'clients' names somebody twice"),
        ({"group": torch.tensor([0, 4])}, "'group' has 0 to 4, declared is -1 to 3"),
        ({"group": torch.tensor([-2, 0])}, "'group' has -2 to 0, declared is -1 to 3"),
        ({"table": torch.full((2, 4, 2), torch.nan)}, "'table' has numbers that are not finite"),
        ({"table": torch.full((2, 4, 2), torch.inf)}, "'table' has numbers that are not finite"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(changed, said):
    assert refused(changed) == f"upload message refused: {said}"


def test_only_the_smallest_is_declared_of_some():
    counts = Schema("upload", {**SCHEMA.fields, "group": Field(torch.int64, ("clients",), least=0)}, {"items": 4})
    assert refused({}, counts).endswith("'group' has -1 to 3, declared is at least 0")


def test_another_kind_and_another_version_are_refused(monkeypatch):
    assert refused({}, kind="download").endswith("it says it is 'download 1', expected was 'upload 1'")
    monkeypatch.setattr(wire, "VERSION", 2)
    newer = encode("upload", tensors())
    monkeypatch.undo()
    with pytest.raises(MessageError, match="it says it is 'upload 2', expected was 'upload 1'"):
        decode(newer, SCHEMA)


def test_a_file_of_tensors_is_no_message():
    for metadata in ({}, {"confed": "upload 1"}):
        plain = header(tensors(), metadata) + b"".join(contents(tensors()))
        with pytest.raises(MessageError):
            decode(plain, SCHEMA)


def test_a_message_that_is_too_long_is_not_read(monkeypatch):
    data = encode("upload", tensors())
    monkeypatch.setattr(wire, "MOST_BYTES", len(data) - 1)
    with pytest.raises(MessageError, match=r"bytes, .* are allowed"):
        decode(data, SCHEMA)


MESSAGE = encode("upload", tensors())
corruptions = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, len(MESSAGE) - 1), st.integers(1, 255)),
    st.tuples(st.just("cut"), st.integers(0, len(MESSAGE) - 1), st.just(0)),
    st.tuples(st.just("drop"), st.integers(0, len(MESSAGE) - 1), st.integers(1, 40)),
    st.tuples(st.just("insert"), st.integers(0, len(MESSAGE)), st.integers(0, 255)),
    st.tuples(st.just("swap"), st.integers(0, len(MESSAGE) - 17), st.integers(1, 16)),
)


def corrupted(kind, place, value):
    data = bytearray(MESSAGE)
    if kind == "flip":
        data[place] ^= value
    elif kind == "cut":
        del data[place:]
    elif kind == "drop":
        del data[place : place + value]
    elif kind == "insert":
        data.insert(place, value)
    else:
        data[place], data[place + value] = data[place + value], data[place]
    return bytes(data)


@settings(max_examples=500, suppress_health_check=[HealthCheck.filter_too_much])
@given(corruptions)
def test_corrupted_messages_are_refused(how):
    data = corrupted(*how)
    if data == MESSAGE:  # two equal bytes were exchanged
        return
    with pytest.raises(MessageError, match=r"^upload message refused: ."):
        decode(data, SCHEMA)


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_any_bytes_are_refused(data):
    with pytest.raises(MessageError, match=r"^upload message refused: ."):
        decode(data, SCHEMA)


def test_a_forged_header_with_a_fitting_digest_is_refused():
    """The digest is of the tensors; the header itself must be the one that they give."""
    body = b"".join(contents(tensors()))
    text = header(tensors(), {"confed": "upload 1", "digest": hashlib.blake2b(body, digest_size=16).hexdigest()})
    spaced = text[8:].replace(b'"dtype": ', b'"dtype":  ', 1).rstrip()
    spaced += b" " * (-len(spaced) % 8)
    with pytest.raises(MessageError, match="changed on the way"):
        decode(len(spaced).to_bytes(8, "little") + spaced + body, SCHEMA)


def forged(entries, body=b"", metadata='{"confed": "upload 1"}'):
    """Bytes in the format, whose header was written by somebody else."""
    listed = "".join(f', "{name}": {entry}' for name, entry in entries.items())
    text = f'{{"__metadata__": {metadata}{listed}}}'.encode()
    return len(text).to_bytes(8, "little") + text + body


FINE = {
    "clients": '{"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}',
    "group": '{"dtype": "I64", "shape": [2], "data_offsets": [16, 32]}',
    "table": '{"dtype": "F32", "shape": [2, 4, 2], "data_offsets": [32, 96]}',
}


@pytest.mark.parametrize(
    "data",
    [
        *(
            forged({**FINE, "table": f'{{"dtype": "{kind}", "shape": [2, 4, 2], "data_offsets": [32, 96]}}'}, bytes(64))
            for kind in ("F16", "BF16", "F8_E4M3", "U64", "I8", "C64", "no such")
        ),
        forged(FINE, bytes(96), "null"),
        forged(FINE, bytes(96), "[]"),
        forged(FINE, bytes(96), '{"confed": ["upload 1"]}'),
        forged({**FINE, "table": "null"}, bytes(96)),
        forged({**FINE, "table": '{"dtype": "F32", "shape": [2, 4.0, 2], "data_offsets": [32, 96]}'}, bytes(96)),
        forged({**FINE, "table": '{"dtype": "F32", "shape": [true, 4, 2], "data_offsets": [32, 96]}'}, bytes(96)),
        forged({**FINE, "table": '{"dtype": "F32", "shape": [0, 4, 2], "data_offsets": [32, 32]}'}, bytes(32)),
        forged({**FINE, "table": f'{{"dtype": "F32", "shape": [{2**62}, 4, 2], "data_offsets": [32, 96]}}'}, bytes(96)),
        forged({**FINE, "table": '{"dtype": "F32", "shape": [2, 4, 2], "data_offsets": [96, 32]}'}, bytes(96)),
        forged({**FINE, "table": '{"dtype": "F32", "shape": [2, 4, 2]}'}, bytes(96)),
        (100).to_bytes(8, "little") + b"[" * 100,
        (2**63).to_bytes(8, "little") + MESSAGE[8:],
        (0).to_bytes(8, "little"),
        MESSAGE + b"more",
    ],
)
def test_forged_headers_are_refused(data):
    with pytest.raises(MessageError, match=r"^upload message refused: ."):
        decode(data, SCHEMA)


def test_a_header_larger_than_the_schema_allows_is_not_parsed():
    many = forged({f"t{number}": '{"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}' for number in range(500)})
    with pytest.raises(MessageError, match=r"do not begin with a header$"):
        decode(many, SCHEMA)


def test_names_that_others_chose_are_shown_as_data():
    hostile = {"\x1b[2J\nfake": torch.zeros(1), **{f"x{number}": torch.zeros(1) for number in range(9)}}
    said = refused(hostile)
    assert "\x1b" not in said and "\n" not in said and "\\x1b[2J" in said
    assert said.endswith("and 5 more")


def test_axes_may_be_large_where_another_is_empty():
    schema = Schema("upload", {"rows": Field(torch.float32, ("a", "b", "c"))})
    data = forged({"rows": f'{{"dtype": "F32", "shape": [0, {2**31}, {2**31}], "data_offsets": [0, 0]}}'})
    with pytest.raises(MessageError, match=r"^upload message refused: ."):
        decode(data, schema)
