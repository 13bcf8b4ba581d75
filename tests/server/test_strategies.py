import pytest
import torch

from confed.data.shares import Roster
from confed.messages import PartialSum, Sums
from confed.messages.agreement import FACTS
from confed.methods.base import FederatedMethod, Terms
from confed.methods.registry import METHODS
from confed.server.strategies import Average, ServerAdam
from confed.server.uploads import Uploads


def test_everybody_receives_the_one_version():
    strategy = Average({"items": "participants"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    download = strategy.download(torch.arange(2))
    assert download.tables["items"].shape == (1, 3, 2)
    assert download.table_of.tolist() == [0] * 5
    assert strategy.uploads == {"items", "loss"}


def test_weights_are_a_declared_upload():
    assert Average({"items": "holders", "net": "samples"}).uploads == {"items", "net", "samples", "held", "loss"}


def test_state_round_trip():
    strategy = Average({"items": "participants"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    strategy.load({"items": torch.zeros(3, 2)})
    assert not strategy.download(torch.arange(2)).tables["items"].any()
    assert set(strategy.state()) == {"items"}


def nothing(strategy, shared):
    """A round in which nobody sent anything."""
    of = {name: PartialSum.nothing(shared[name], over) for name, over in strategy.plan.items()}
    return Uploads(Sums(0, 0.0, 0, of), strategy.plan, shared)


def test_no_uploads_leave_the_tables_alone():
    strategy = Average({"items": "holders"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    strategy.aggregate(nothing(strategy, {"items": torch.ones(3, 2)}), 1)
    assert torch.equal(strategy.state()["items"], torch.ones(3, 2))


FEDERATED = [name for name, method in METHODS.items() if isinstance(method, FederatedMethod)]


def strategy_of(name):
    """Of six items, or of the people whom companies share."""
    method = METHODS[name]
    terms = Terms(method.config(None, {"dim": 4} if "dim" in method.config_class.model_fields else {}), seed=0)
    silo = method.kind == "silo"
    known = {domain: torch.arange(6) for domain in "abcde"} if silo else {}
    server = method.server(terms, Roster(torch.arange(5), 6, known))
    return server.strategy, server.agreement


@pytest.mark.parametrize("name", FEDERATED)
def test_what_is_planned_is_shared_and_declared(name):
    strategy, agreed = strategy_of(name)
    assert strategy.plan.keys() == agreed.plan.keys() <= strategy.uploads == agreed.uploads
    assert agreed.shapes.keys() - agreed.own.keys() <= strategy.uploads
    assert strategy.uploads <= agreed.shapes.keys() | FACTS.keys()
    if strategy.needs == "sum":
        assert strategy.plan.keys() == agreed.shapes.keys(), "nobody looks at single clients"
    assert strategy.needs == agreed.needs


@pytest.mark.parametrize("name", FEDERATED)
def test_a_strategy_for_which_sums_are_enough_never_sees_a_client(name):
    """It is content with what was planned, and there is nothing else to be had."""
    strategy, agreed = strategy_of(name)
    if strategy.needs == "individual":
        return
    bases = agreed.bases(strategy.download(torch.arange(2)))
    strategy.aggregate(nothing(strategy, bases), 1)
    for table in strategy.plan:
        # Adam's first step has the length of its rate, wherever the decay of weights points.
        left = bases[table] - strategy.rate * bases[table].sign() if isinstance(strategy, ServerAdam) else bases[table]
        torch.testing.assert_close(strategy.state()[table], left, rtol=0, atol=1e-6 if left is not bases[table] else 0)
