"""A slip of the pen in a method of one's own is an error that names it, and not another method."""

from dataclasses import replace

import pytest

from confed.clients.procedures import Step
from confed.errors import ConfedError
from confed.methods.base import Terms
from confed.methods.fedmf import FedMF
from confed.server.strategies import Average
from confed.testing import tiny


class Slip(FedMF):
    """FedMF with one piece changed."""

    name = "slip"

    def __init__(self, change):
        self.change = change

    def pieces(self, config, items):
        return self.change(super().pieces(config, items))


def with_step(**fields):
    def change(pieces):
        (phase,) = pieces.procedure.phases
        (step,) = phase.steps
        phases = (replace(phase, steps=(replace(step, **fields),)),)
        return replace(pieces, procedure=replace(pieces.procedure, phases=phases))

    return change


def with_plan(plan):
    return lambda pieces: replace(pieces, strategy=Average(plan))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda pieces: replace(pieces, strategy=Average({"item": "participants"})),
            "plan has 'item', .* shares .'items'",
        ),
        (
            lambda pieces: replace(pieces, strategy=Average({"user": "participants"})),
            "plan has 'user', .* shares .'items'",
        ),
        (
            lambda pieces: replace(pieces, strategy=Average({"items": "sample"})),
            "a mean of 'items' over 'sample': there are",
        ),
        (with_step(rates={"item": 0.1}), "a rate of 'item', its backbone has"),
        (with_step(optimiser="Adam"), "optimiser = 'Adam', there are .'adam', 'sgd'"),
        (lambda pieces: replace(pieces, view="pushed"), "view = 'pushed': slip can be scored under"),
    ],
)
def test_a_slip_is_said_before_anything_starts(change, said):
    method = Slip(change)
    with pytest.raises(ConfedError, match=said):
        method.check(Terms(method.config(None, {}), seed=0), tiny.cut())


def test_without_a_slip_nothing_is_said():
    method = Slip(with_step(optimiser="sgd"))
    method.check(Terms(method.config(None, {}), seed=0), tiny.cut())
    assert isinstance(method.pieces(method.config(None, {}), 5).procedure.phases[0].steps[0], Step)
