"""Fed3CR's fused training against the batched form."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.clients.backbones import AdaptiveTransfer, DualTable, LinearHead
from confed.clients.cohort import Cohort
from confed.clients.fused_dual import fusable_dual
from confed.clients.procedures import Procedure
from confed.clients.sampling import draw_rows
from confed.clients.store import ClientStore
from confed.messages import Download
from confed.methods.registry import method_named
from confed.random import Stream
from confed.testing.tiny import ITEMS, USERS, cut

OPTIONS = {
    "dim": 4,
    "learning_rate": 0.02,
    "item_rate": 0.7,
    "local_epochs": 3,
    "alpha": 2.0,
    "consistency_weight": 0.7,
    "complementarity_weight": 0.9,
}


def pieces(**options):
    config = method_named("fed3cr").config("tiny", {**OPTIONS, **options})
    client = config.client(ITEMS)
    (phase,) = config.procedure(client).phases
    return client, phase


def whole(phase):
    return Procedure((phase,), negatives=4, round_decay=0.9)


def cohort(backbone, phase, dtype):
    shared = {p.name: p.initial(0, dtype)[None] for p in backbone.named(scope="shared")}
    rows = draw_rows(cut().training, np.arange(USERS), 4, Stream.of(0, "n"), dtype, whole=phase.dense)
    store = ClientStore(backbone, USERS, 0, dtype)
    return Cohort(backbone, store, Download(shared, torch.zeros(USERS, dtype=torch.int64)), rows)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layers": 1, "residual": True},
        {"layers": 4, "detach_prototypes": True, "temperature": 0.2},
        {"variant": "C0"},
        {"variant": "C1"},
        {"variant": "C4", "batch_decay": 1.0},
        {"variant": "C6"},
        {"ace": "consensus"},
        {"ace": "unified"},
        {"variant": "C1", "ace": "unified"},
    ],
)
@pytest.mark.parametrize("batch_size", [7, 256])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-2)])
def test_fused_equals_batched(options, batch_size, dtype, tolerance):
    assert_fused_equals_batched(*pieces(batch_size=batch_size, **options), dtype, tolerance)


def assert_fused_equals_batched(backbone, phase, dtype, tolerance, prepare=lambda cohort: None):
    assert fusable_dual(backbone, phase)
    fused, batched = cohort(backbone, phase, dtype), cohort(backbone, phase, dtype)
    prepare(fused), prepare(batched)
    before = {name: tensor.clone() for name, tensor in {**fused.tables, **fused.params}.items()}
    losses = fused.train(whole(phase), Stream.of(0, "shuffle"), 3)
    batched.round = 3
    expected = batched._train_batched(*whole(phase).at(3), batched.rows, Stream.of(0, "shuffle"))
    close = {"rtol": tolerance, "atol": tolerance}
    assert losses.keys() == expected.keys()
    for name, loss in expected.items():
        torch.testing.assert_close(losses[name], loss.double(), **close)
    after = {**batched.tables, **batched.params}
    for name, found in {**fused.tables, **fused.params}.items():
        change, expected = found - before[name], after[name] - before[name]
        largest = float(expected.abs().max())
        assert largest > 0, name
        torch.testing.assert_close(change / largest, expected / largest, **close)


@pytest.mark.parametrize(
    "options",
    [
        {"backbone": "pfedrec"},
        {"backbone": "fedncf"},
        {"backbone": "fedrap"},
        {"consistency": "Ls"},
        {"complementarity": "Lm"},
        {"top_one": "shifted"},
        {"divergence": True},
        {"reproduction": {"saturating_bce": True}},
    ],
)
def test_other_forms_are_trained_in_batches(options):
    assert not fusable_dual(*pieces(**options))


def test_a_head_with_a_bias_in_one_step():
    """No method does this today, but the form is the same."""
    backbone = DualTable(LinearHead(ITEMS, 4), AdaptiveTransfer(4, 2, 2.0), 0.5)
    _, phase = pieces()
    step = replace(phase.steps[0], rates={spec.name: 0.05 for spec in backbone.params})
    assert_fused_equals_batched(backbone, replace(phase, steps=(step,)), torch.float64, 1e-10)


@pytest.mark.parametrize("empty", ["items", "own"])
def test_rows_of_zeros_have_no_direction(empty):
    backbone, phase = pieces(variant="C4")

    def blank(cohort):
        cohort.tables[empty].zero_()

    assert_fused_equals_batched(backbone, phase, torch.float64, 1e-6, blank)


def test_layers_with_rates_of_their_own_are_trained_in_batches():
    backbone, phase = pieces()
    step = phase.steps[0]
    other = replace(step, rates={**step.rates, "generator_bias_1": 0.5})
    assert not fusable_dual(backbone, replace(phase, steps=(other,)))


def test_terms_that_are_looked_at_anew_cannot_be_taken_once_a_round():
    backbone, phase = pieces()
    once = replace(phase, schedule="once-per-round")
    with pytest.raises(ValueError, match="once a round"):
        cohort(backbone, once, torch.float64).train(whole(once), Stream.of(0, "shuffle"), 1)


def test_a_rate_per_client_follows_the_client():
    backbone, phase = pieces()
    rates = torch.ones(USERS)
    rates[5] = 0.0
    step = phase.steps[0]
    own = replace(phase, steps=(replace(step, rates={n: r * rates for n, r in step.rates.items()}),))
    trained = cohort(backbone, own, torch.float64)
    before = trained.tables["own"].clone()
    trained.train(whole(own), Stream.of(0, "shuffle"), 1)
    changed = (trained.tables["own"] != before).flatten(1).any(dim=1)
    assert changed.sum() == USERS - 1
    assert not changed[(trained.clients == 5).nonzero()[0, 0]]
