"""When training is given up."""

import math

import pytest
import torch

import confed
from confed.config import MethodConfig
from confed.errors import ConfedError, DivergedError, in_domain, said_of
from confed.federations.frames import Frame
from confed.federations.remote import error_frame, raise_error
from confed.methods.central import JointMethod
from confed.methods.registry import METHODS
from confed.runs.memory import within_memory
from confed.soundness import is_finite, require_scores, trained, unless
from tests.faults.options import data_for

BOUNDED = {"pmlam", "scalar", "local-only", "fcf", "perfedrec"}
"""Whose parameters are kept within bounds, whose scores are single numbers, whose clients solve for their own part
whatever the server's steps made of the rest, or take one step of which the length does not grow: large steps do no
harm."""


def steps(method, **options):
    return confed.run(method, data_for(method), rounds=8, options=options, notice=lambda text: None)


@pytest.mark.parametrize(
    "method",
    [name for name, of in METHODS.items() if "learning_rate" in of.config_class.model_fields and name not in BOUNDED],
)
def test_an_explosion_says_when_whose_and_what_to_try(method):
    with pytest.raises(DivergedError) as found:
        steps(method, learning_rate=1e3)
    whose = {"one": r"of user '\d+' is", "several": "domain a: ", "any": "the loss is"}[METHODS[method].domains]
    found.match(r"^round \d+: ")
    if not isinstance(METHODS[method], JointMethod):  # which has one model of all domains
        found.match(whose)
    found.match(r"lower (`learning_rate`|the learning rate)")


@pytest.mark.parametrize("method", ["pfedrec", "fedncf", "fedrap", "fed3cr"])
def test_published_probabilities_explode_like_any(method):
    with pytest.raises(DivergedError, match="lower the learning rate"):
        steps(method, **{"learning_rate": 1e12, "reproduction.saturating_bce": True})


def test_closed_forms_have_no_steps():
    with pytest.raises(DivergedError, match="a number in 'B' is not finite: some option is out of all proportion"):
        trained(lambda: None, lambda: {"B": torch.tensor([math.nan])}, 10)


def test_names_survive_on_the_way_from_a_site():
    error = DivergedError("the loss of {client} is 7", 12)
    with pytest.raises(DivergedError) as found, said_of("round 3"), in_domain("book"):
        raise_error(Frame.from_bytes(error_frame(error)))
    assert found.value.message == "round 3: domain book: the loss of client 12 is 7"
    assert found.value.domain == "book"
    assert found.value.called("user 'a'").message == "round 3: domain book: the loss of user 'a' is 7"


def test_a_site_without_memory_says_so_as_any_place_does():
    with pytest.raises(ConfedError, match="does not fit into the memory"), within_memory(MethodConfig()):
        raise_error(Frame.from_bytes(error_frame(MemoryError("Unable to allocate 8 TiB"))))


def test_a_loss_may_be_what_every_outcome_costs_at_most():
    """With 10 outcomes, each of a probability that no number can hold any more."""
    assert trained(lambda: 7450.0, dict, 10) == 7450.0
    assert trained(lambda: None, dict, 10) is None
    for loss in (7451.0, -7451.0, math.inf, math.nan):
        with pytest.raises(DivergedError, match="the loss is "):
            trained(lambda loss=loss: loss, dict, 10)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_state_is_finite(value):
    table = torch.zeros(3, 4)
    assert is_finite(table) and is_finite(table[:0]) and is_finite(torch.arange(3))
    table[2, 1] = value
    assert not is_finite(table)
    with pytest.raises(DivergedError, match="a number in 'table' is not finite: lower `learning_rate`"):
        trained(lambda: 1.0, lambda: {"table": table}, 10)


def test_an_error_of_a_library_is_an_explosion_only_if_there_was_one():
    def explode():
        raise DivergedError("it did")

    with pytest.raises(RuntimeError, match="a bug"), unless(lambda: None):
        raise RuntimeError("a bug")
    with pytest.raises(DivergedError, match="it did"), unless(explode):
        raise RuntimeError("all elements of input should be between 0 and 1")
    with pytest.raises(ConfedError, match="a matrix cannot be decomposed"), unless(lambda: None):
        torch.linalg.cholesky(-torch.eye(2))


def test_scores_are_those_of_somebody():
    scores = torch.zeros(2, 3)
    require_scores(scores, torch.tensor([7, 9]))
    scores[1, 2] = math.inf
    with pytest.raises(DivergedError) as found:
        require_scores(scores, torch.tensor([7, 9]))
    assert found.value.client == 9
