"""Questions to a site and its answers, as bytes and back."""

from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from confed.data.shares import Roster, Share
from confed.errors import MessageError
from confed.evaluation.domains import Examination
from confed.federations.frames import Codec, Frame
from confed.federations.site import Trained
from confed.messages import Agreement, Download, Field, PartialSum, Push, Sums, Tally, encode
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.seals import Sealed
from confed.testing import tiny

AGREED = Agreement(
    items=4,
    dtype=torch.float32,
    received={"items": (4, 3), "net": (2,)},
    kept={"own": (4, 2)},
    uploads=frozenset({"items", "net", "own", "held", "loss"}),
    plan={"items": "holders", "net": "sum", "own": "participants"},
    needs="individual",
    side={"membership": Field(torch.uint8, ("items",), least=0, below=5, optional=True)},
)
CODEC = Codec(AGREED, clients=3, rankings={"": ("", "full_"), "book": ("",)})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def download():
    tables = {"items": drawn(2, 4, 3), "net": drawn(2, 2)}
    side = {"membership": torch.tensor([0, 4, 1, 1], dtype=torch.uint8)}
    return Download(tables, torch.tensor([0, 1, 1]), side, alike=torch.tensor([-1, 0, 0]))


def push():
    return Push({"own": drawn(1, 4, 2)}, torch.tensor([0, -1, 0]))


def partials(seed):
    changes = {"items": drawn(4, 3, seed=seed, dtype=torch.float64), "own": drawn(4, 2, seed=seed, dtype=torch.float64)}
    weights = {"items": torch.tensor([1.0, 0, 2, 0], dtype=torch.float64), "own": torch.tensor(2.0).double()}
    return {name: PartialSum(changes[name], weights[name]) for name in changes}


def trained():
    of = {**partials(1), "net": PartialSum(drawn(2, dtype=torch.float64), torch.tensor(3.0).double())}
    notes = {"losses": {"a": 0.5}, "group": 3}
    return Trained(Sums(3, 1.5, 1000, of), 1.75, {"": tally("", "full_"), "book": tally("")}, notes)


def tally(*rankings):
    cases = {part: torch.tensor([7, 2**50]) for part in ("validation", "test")}
    ranks = {f"{ranking}{part}": torch.tensor([3, 0]) for ranking in rankings for part in cases}
    return Tally(cases, ranks, {name: torch.zeros_like(values) for name, values in ranks.items()})


QUESTIONS = {
    "train": {"number": 3, "download": download(), "clients": torch.tensor([0, 2]), "push": push(), "examine": True},
    "examine": {"download": download(), "clients": torch.tensor([1]), "push": None},
    "each": {"names": ["items", "own"], "where": torch.tensor([2**60, 5]), "items": torch.tensor([3, 1])},
    "partials": {"names": ["items", "own"], "groups": [torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64)]},
    "mark": {"push": push()},
    "commit": {"folder": "runs/some/checkpoint", "name": "site-0", "push": None},
    "restore": {"folder": "runs/some/checkpoint", "sealed": None},
}


ANSWERS = {
    "train": trained(),
    "examine": trained().tallies,
    "each": (torch.tensor([2**60, 5]), {"items": drawn(2, 2, 3), "own": drawn(2, 2, 2)}),
    "partials": [partials(1), partials(2)],
    "mark": None,
    "commit": Sealed("site-0-0123456789abcdef.safetensors", 100, "0123456789abcdef" * 4),
    "restore": None,
}


def same(one, other):
    """Equal in all that they hold."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and same(vars(one), vars(other))
    return one == other


def carried(frame):
    return Frame.from_bytes(frame.to_bytes())


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_arrives_as_it_was_asked(name):
    found, about = CODEC.asked(carried(CODEC.question(name, QUESTIONS[name])))
    assert found == name and same(about, QUESTIONS[name])


def test_a_question_about_no_groups_and_no_clients():
    for name, about in (
        ("partials", {"names": ["items"], "groups": []}),
        ("train", {**QUESTIONS["train"], "clients": torch.tensor([], dtype=torch.int64)}),
    ):
        assert same(CODEC.asked(carried(CODEC.question(name, about)))[1], about)


def answered(name, found, codec=CODEC):
    return codec.answered(name, QUESTIONS[name], carried(CODEC.answer(name, found)))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_answer_arrives_as_it_was_given(name):
    assert same(answered(name, ANSWERS[name]), ANSWERS[name])


def test_answers_of_those_who_were_not_examined_or_have_nothing_to_note():
    quiet = replace(trained(), tallies={}, notes={})
    assert same(answered("train", quiet), quiet)
    assert answered("examine", {}) == {}


def test_names_may_stand_in_a_tuple():
    about = {**QUESTIONS["each"], "names": ("items", "own")}
    _, asked = CODEC.asked(carried(CODEC.question("each", about)))
    assert asked["names"] == ["items", "own"]
    answer = CODEC.answer("each", (torch.tensor([5]), {"items": drawn(1, 2, 3), "own": drawn(1, 2, 2)}))
    assert CODEC.answered("each", about, carried(answer))[0].tolist() == [5]


def test_a_site_answers_over_bytes_as_it_does_directly():
    """All questions of a round, to a site of real clients."""
    method = method_named("cofedrec")
    terms = Terms(method.config(None, {"dim": 4, "clusters": 3}), seed=0, dtype="float64")
    examination = Examination.of(tiny.cut(), tiny.TINY_STRICT, 0)
    server = method.server(terms, Roster.of(tiny.cut()))
    direct, beyond = (
        method.site(terms, Share.of(tiny.cut()), examination.judges, rebuilt=server.rebuilt) for _ in range(2)
    )
    codec = Codec(server.agreement, tiny.USERS, examination.grading.rankings)
    everybody = torch.arange(tiny.USERS)
    questions = {
        "train": {
            "number": 1,
            "download": server.download().of(everybody),
            "clients": everybody,
            "push": None,
            "examine": True,
        },
        "each": {"names": ["items"], "where": torch.tensor([6, 2, 7]), "items": torch.tensor([4, 40])},
        "partials": {"names": ["items"], "groups": [torch.tensor([1, 2]), torch.tensor([5])]},
        "examine": {"download": server.download().of(everybody), "clients": everybody, "push": None},
    }
    for name, about in questions.items():
        asked, told = codec.asked(carried(codec.question(name, about)))
        expected, found = getattr(direct, name)(**about), getattr(beyond, asked)(**told)
        expected, found = (list(of) if name == "each" else [of] for of in (expected, found))
        again = [codec.answered(name, about, carried(codec.answer(name, one))) for one in found]
        assert same(again, expected)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(st.binary(), max_size=4))
def test_frames_go_through_bytes(head, messages):
    again = carried(Frame(head, messages))
    assert again.head == head and list(again.messages) == messages


@given(st.binary(max_size=200))
def test_bytes_that_are_no_frame_are_refused(data):
    try:
        frame = Frame.from_bytes(data)
    except MessageError:
        return
    assert isinstance(frame.head, dict) and frame.to_bytes()


@given(st.data())
def test_a_frame_that_was_cut_off_is_refused_or_has_fewer_messages(data):
    """Where a message ends, a shorter frame may end as well: that is for the questions to notice."""
    whole = CODEC.question("train", QUESTIONS["train"])
    length = data.draw(st.integers(0, len(whole.to_bytes()) - 1))
    try:
        frame = Frame.from_bytes(whole.to_bytes()[:length])
    except MessageError:
        return
    assert frame.head == whole.head and len(frame.messages) < len(whole.messages)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "without a head"),
        (b"\x05", "ends in the middle"),
        ((2**63).to_bytes(8, "little") + b"{}", "ends in the middle"),
        ((2).to_bytes(8, "little") + b"[]", "head is no object"),
        ((2).to_bytes(8, "little") + b"{]", "without a head"),
        ((2).to_bytes(8, "little") + b"\xff\xff", "without a head"),
        ((200_000).to_bytes(8, "little") + b"[" * 200_000, "without a head"),
    ],
)
def test_what_is_wrong_with_bytes_that_are_no_frame(data, said):
    with pytest.raises(MessageError, match=said):
        Frame.from_bytes(data)


@given(st.data())
def test_whatever_happens_on_the_way_is_a_message_error(data):
    """A byte is changed in a question or an answer: it is refused, or nothing that matters has changed."""
    name = data.draw(st.sampled_from(["train", "each", "partials"]))
    frame = CODEC.question(name, QUESTIONS[name])
    changed = bytearray(frame.to_bytes())
    start = 8 + int.from_bytes(changed[:8], "little")  # the messages: they have digests
    place = data.draw(st.integers(start, len(changed) - 1))
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(MessageError):
        CODEC.asked(Frame.from_bytes(bytes(changed)))


WORDS = ("ask", "plain", "tensors", "loss", "notes", "domains", "said")
HOSTILE = st.fixed_dictionaries({}, optional=dict.fromkeys(WORDS, JSON))


@given(HOSTILE, st.lists(st.binary(max_size=20), max_size=3))
def test_a_head_that_makes_no_sense_is_refused(head, messages):
    """Whoever speaks on the line may have sent it: a MessageError, and nothing else."""
    frame = Frame(head, messages)
    with suppress(MessageError):
        CODEC.asked(frame)
    for name in ("train", "examine", "each", "partials"):
        with suppress(MessageError):
            CODEC.answered(name, QUESTIONS[name], frame)


def frame_of(head, *tensors):
    return Frame(head, [encode("numbers", {"numbers": tensor}) for tensor in tensors])


NOT_WHOLE = {
    "no head of a question": Frame({}),
    "nothing it is about": Frame({"ask": "each"}),
    "no name": Frame({"ask": ["each"], "plain": {}, "tensors": {}}),
    "a message is missing": Frame({"ask": "each", "plain": {}, "tensors": {"where": 1}}),
    "none of something": Frame({"ask": "each", "plain": {}, "tensors": {"where": 0}}),
    "no number": Frame({"ask": "each", "plain": {}, "tensors": {"where": "two"}}),
    "one too many": frame_of({"ask": "each", "plain": {}, "tensors": {}}, torch.tensor([1])),
}


@pytest.mark.parametrize("frame", NOT_WHOLE.values(), ids=NOT_WHOLE.keys())
def test_questions_that_are_not_whole_are_refused(frame):
    with pytest.raises(MessageError):
        CODEC.asked(frame)


CHANGES = {
    "train without a head": lambda whole: Frame({}, whole.messages),
    "train without tallies": lambda whole: Frame(whole.head, whole.messages[:1]),
    "train without sums": lambda whole: Frame(whole.head, []),
    "train of another domain": lambda whole: Frame({**whole.head, "domains": ["", "shoes"]}, whole.messages),
    "train with a loss in words": lambda whole: Frame({**whole.head, "loss": "much"}, whole.messages),
    "examine without a tally": lambda whole: Frame(whole.head, whole.messages[:1]),
    "examine without a head": lambda whole: Frame({}, whole.messages),
    "each without rows": lambda whole: Frame(whole.head, []),
    "each twice": lambda whole: Frame(whole.head, whole.messages * 2),
    "partials of fewer groups than were asked about": lambda whole: Frame(whole.head, whole.messages[:1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_answers_that_are_not_whole_are_refused(change):
    name = change.split()[0]
    with pytest.raises(MessageError):
        CODEC.answered(name, QUESTIONS[name], CHANGES[change](CODEC.answer(name, ANSWERS[name])))


@pytest.mark.parametrize(
    ("codec", "name", "said"),
    [
        (replace(CODEC, clients=4), "train", "clients = 4"),
        (replace(CODEC, agreement=replace(AGREED, dtype=torch.float64)), "train", "declared is F64"),
        (
            replace(CODEC, agreement=replace(AGREED, received={"items": (4, 3)})),
            "examine",
            "not declared: 'tables/net'",
        ),
        (replace(CODEC, agreement=replace(AGREED, kept={"own": (4, 5)})), "mark", "'tables/own' has shape"),
        (replace(CODEC, agreement=replace(AGREED, side={})), "train", "not declared: 'side/membership'"),
    ],
)
def test_a_question_with_other_messages_than_agreed_is_refused(codec, name, said):
    with pytest.raises(MessageError, match=said):
        codec.asked(carried(CODEC.question(name, QUESTIONS[name])))


@pytest.mark.parametrize(
    ("codec", "name", "said"),
    [
        (replace(CODEC, agreement=replace(AGREED, plan={"items": "sum"})), "train", "sums message refused"),
        (replace(CODEC, agreement=replace(AGREED, uploads=frozenset())), "train", "not declared: 'loss'"),
        (replace(CODEC, rankings={"": ("",), "book": ("",)}), "examine", "tally message refused: not declared"),
        (replace(CODEC, agreement=replace(AGREED, received={"items": (4, 9)})), "each", "each message refused"),
        (replace(CODEC, agreement=replace(AGREED, plan={"items": "sum", "own": "sum"})), "partials", "items/weight"),
    ],
)
def test_an_answer_with_other_messages_than_agreed_is_refused(codec, name, said):
    with pytest.raises(MessageError, match=said):
        answered(name, ANSWERS[name], codec)


@pytest.mark.parametrize("name", ["site-1-01.safetensors", "../site-0-01.safetensors", "manifest.json", "site-0-01"])
def test_a_site_writes_only_what_it_was_told(name):
    with pytest.raises(MessageError, match="which is not site-0's"):
        answered("commit", replace(ANSWERS["commit"], name=name))


def test_rows_are_about_those_who_were_asked():
    """Each of them once, and of as many items as were named."""
    with pytest.raises(MessageError, match="has shape"):
        answered("each", (torch.tensor([5]), {"items": drawn(1, 3, 3), "own": drawn(1, 3, 2)}))
    for clients in ([5, 5], [5, 7]):
        with pytest.raises(MessageError):
            answered("each", (torch.tensor(clients), {"items": drawn(2, 2, 3), "own": drawn(2, 2, 2)}))
    whole = {**QUESTIONS["each"], "items": None}
    answer = CODEC.answer("each", (torch.tensor([5]), {"items": drawn(1, 4, 3), "own": drawn(1, 4, 2)}))
    assert CODEC.answered("each", whole, carried(answer))[1]["own"].shape == (1, 4, 2)


def test_a_download_to_companies_names_its_rows():
    method = method_named("fppdm")
    known = {"a": torch.arange(2), "b": torch.arange(2)}
    agreed = method.server(Terms(method.config(None, {"dim": 2}), seed=0), Roster(torch.arange(2), 8, known)).agreement
    tables = {name: drawn(1, 3, 2) for name in agreed.plan}
    some = Download(tables, torch.zeros(2, dtype=torch.int64), rows=torch.tensor([0, 4, 7]))
    codec = Codec(agreed, 2, {})
    about = {"download": some, "push": None}
    assert same(codec.asked(carried(codec.question("examine", about)))[1], about)
