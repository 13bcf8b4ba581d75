"""The fused form of local training against the batched one, which the oracle holds (tests/oracle.py)."""

import numpy as np
import pytest
import torch

from confed.clients.backbones import Additive, BiasedDot, Dot, LinearHead, NeuMF, Renewal
from confed.clients.cohort import Cohort
from confed.clients.fused import fusable
from confed.clients.objectives import BCE, SaturatingBCE
from confed.clients.procedures import Phase, Procedure, Step
from confed.clients.sampling import draw_rows
from confed.clients.standing import item_rows
from confed.clients.store import ClientStore
from confed.initial import normal
from confed.messages import Download
from confed.random import Stream
from confed.testing.tiny import ITEMS, USERS, cut

RATE = torch.linspace(0.0, 2.0, USERS, dtype=torch.float64)
LINEAR = LinearHead(ITEMS, 3)
DOT = Dot(ITEMS, 3, 1.0)
BIASED = BiasedDot(ITEMS, 3, Renewal(2, 0.5))
CASES = {
    "head, then items": (LINEAR, (Step({"weight": 0.1, "bias": 0.3}, (BCE(),)), Step({"items": 5.0}, (BCE(),)))),
    "all together": (LINEAR, (Step({"items": 5.0, "bias": 0.3, "weight": 0.1}, (BCE(),)),)),
    "no bias": (DOT, (Step({"user": 0.1, "items": 5.0}, (BCE(),)),)),
    "offsets of items": (BIASED, (Step(dict.fromkeys(("items", "item_bias", "mean"), 5.0), (BCE(),)),)),
    "several biases": (BIASED, (Step({"user": 0.1, "user_bias": 0.3, "mean": 0.5}, (BCE(),)),)),
    "a rate for each client": (DOT, (Step({"user": 0.1, "items": RATE}, (BCE(),)), Step({"user": RATE}, (BCE(),)))),
}


def cohort(backbone, dtype):
    shared = {p.name: p.initial(0, dtype)[None] for p in backbone.named(scope="shared")}
    rows = draw_rows(cut().training, np.arange(USERS), 4, Stream.of(0, "n"), dtype)
    store = ClientStore(backbone, USERS, 0, dtype)
    return Cohort(backbone, store, Download(shared, torch.zeros(USERS, dtype=torch.int64)), rows)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch_size", [7, 256])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-4)])
def test_fused_equals_batched(case, batch_size, dtype, tolerance):
    backbone, steps = CASES[case]
    phase = Phase(steps, epochs=2, batch_size=batch_size)
    assert fusable(backbone, phase)
    fused, batched = cohort(backbone, dtype), cohort(backbone, dtype)
    before = {name: tensor.clone() for name, tensor in {**fused.tables, **fused.params}.items()}
    losses = fused.train(Procedure((phase,), 4), Stream.of(0, "shuffle"))
    expected = batched._train_batched(phase, batched.rows, Stream.of(0, "shuffle"))
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(losses, expected, **close)
    torch.testing.assert_close(fused.tables, batched.tables, **close)
    torch.testing.assert_close(fused.params, batched.params, **close)
    stepped = {name for step in steps for name in step.rates}
    moved = {n for n, tensor in {**fused.tables, **fused.params}.items() if not torch.equal(before[n], tensor)}
    assert moved == stepped


@pytest.mark.parametrize("backbone", [LINEAR, DOT, Additive(ITEMS, 3, 1.0), BIASED])
@pytest.mark.parametrize("some", [slice(None), slice(1, 4), torch.tensor([5, 0])], ids=["all", "a stretch", "a few"])
def test_own_rows_are_scored_as_the_backbone_does_and_others_as_they_were_downloaded(backbone, some):
    trained = cohort(backbone, torch.float64)
    for table in trained.tables.values():
        table.add_(torch.randn(table.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    found = trained.scores(some)
    for row, client in enumerate(torch.arange(USERS)[some].tolist()):
        params = {name: value[client : client + 1] for name, value in trained.params.items()}
        own = {name: table[client : client + 1] for name, table in trained.tables.items()}
        whole = item_rows(backbone, trained.store, trained.download, trained.clients[client : client + 1])
        expected, touched = backbone.logits(params, whole)[0], trained.rows.touched[client]
        expected[touched[touched < ITEMS]] = backbone.logits(params, own)[0][touched < ITEMS]
        torch.testing.assert_close(found[row], expected)


def test_large_scores_neither_overflow_nor_lose_their_gradient():
    backbone, steps = CASES["head, then items"]
    client = cohort(backbone, torch.float64)
    client.params["bias"].fill_(-900.0)
    losses = client.train(Procedure((Phase(steps, 1, 256),), 4), Stream.of(0, "shuffle"))[BCE.name]
    assert bool(torch.isfinite(losses).all())
    assert float(losses.min()) > 100.0


@pytest.mark.parametrize(
    ("backbone", "step"),
    [
        (NeuMF(ITEMS, 3, (3, 2), "neumf", normal(1.0)), Step({"head": 0.1}, (BCE(),))),
        (DOT, Step({"user": 0.1}, (BCE(),), "adam")),
        (DOT, Step({"user": 0.1}, (SaturatingBCE(),))),
        (DOT, Step({"user": 0.1}, (BCE(), BCE()))),
    ],
)
def test_whatever_is_not_of_this_form_is_left_to_the_batched_way(backbone, step):
    assert not fusable(backbone, Phase((step,), 1, 8))
