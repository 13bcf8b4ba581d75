import pytest
import torch

from confed.methods.base import FederatedMethod
from confed.methods.registry import METHODS
from confed.server.strategies import Average


def test_everybody_receives_the_one_version():
    strategy = Average({"items": "participants"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    download = strategy.download()
    assert download.tables["items"].shape == (1, 3, 2)
    assert download.table_of.tolist() == [0] * 5
    assert strategy.uploads == {"items", "loss"}


def test_weights_are_a_declared_upload():
    assert Average({"items": "holders", "net": "samples"}).uploads == {"items", "net", "samples", "held", "loss"}


def test_state_round_trip():
    strategy = Average({"items": "participants"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    strategy.load({"items": torch.zeros(3, 2)})
    assert not strategy.download().tables["items"].any()
    assert set(strategy.state()) == {"items"}


def test_no_uploads_leave_the_tables_alone():
    strategy = Average({"items": "holders"})
    strategy.start({"items": torch.ones(3, 2)}, torch.arange(5), seed=0)
    strategy.aggregate(strategy.collector(torch.arange(5)), 1)
    assert torch.equal(strategy.state()["items"], torch.ones(3, 2))


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if isinstance(method, FederatedMethod)])
def test_a_strategy_for_which_sums_are_enough_never_sees_a_client(name):
    """It may ask for what was planned, and for nothing of anybody."""
    method = METHODS[name]
    pieces = method.pieces(method.config(None, {}), 6)
    shared = {spec.name: torch.ones(spec.shape) for spec in pieces.backbone.named(scope="shared")}
    pieces.strategy.start(shared, torch.arange(5), 0)
    assert pieces.strategy.plan.keys() == pieces.strategy.shared.keys() == shared.keys()
    assert shared.keys() <= pieces.strategy.uploads
    uploads = pieces.strategy.collector(torch.arange(5))
    if pieces.strategy.needs == "individual":
        return
    for table, over in pieces.strategy.plan.items():
        assert torch.equal(uploads.mean(table, over=over), shared[table])
        with pytest.raises(ValueError, match="only the planned sum"):
            uploads.mean(table, over=over, where=torch.tensor([1]))
        with pytest.raises(ValueError, match="not the uploads of single clients"):
            uploads.rows(table, torch.tensor([0]), where=torch.tensor([1]))
