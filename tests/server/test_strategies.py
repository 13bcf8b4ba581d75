import torch

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
