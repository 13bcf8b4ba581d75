"""FedNCF's fused training against the batched form."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.clients.cohort import Cohort
from confed.clients.fused_tower import fusable_tower
from confed.clients.procedures import Procedure
from confed.clients.sampling import draw_rows
from confed.clients.store import ClientStore
from confed.messages import Download
from confed.methods.registry import method_named
from confed.random import Stream
from confed.testing.tiny import ITEMS, USERS, cut

OPTIONS = {"dim": 8, "learning_rate": 0.02, "local_epochs": 3}


def pieces(**options):
    method = method_named("fedncf")
    made = method.pieces(method.config("tiny", {**OPTIONS, **options}), ITEMS)
    (phase,) = made.procedure.phases
    return made.backbone, phase


def cohort(backbone, dtype, whole):
    shared = {p.name: p.initial(0, dtype)[None] for p in backbone.named(scope="shared")}
    rows = draw_rows(cut().training, np.arange(USERS), 4, Stream.of(0, "n"), dtype, whole=whole)
    store = ClientStore(backbone, USERS, 0, dtype)
    return Cohort(backbone, store, Download(shared, torch.zeros(USERS, dtype=torch.int64)), rows)


@pytest.mark.parametrize("options", [{}, {"variant": "mlp"}, {"dim": 5, "local_epochs": 1}, {"train_negatives": 1}])
@pytest.mark.parametrize("batch_size", [7, 256])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-3)])
def test_fused_equals_batched(options, batch_size, whole, dtype, tolerance):
    backbone, phase = pieces(batch_size=batch_size, **options)
    assert fusable_tower(backbone, phase)
    fused, batched = cohort(backbone, dtype, whole), cohort(backbone, dtype, whole)
    before = {name: tensor.clone() for name, tensor in {**fused.tables, **fused.params}.items()}
    losses = fused.train(Procedure((phase,), 4), Stream.of(0, "shuffle"))
    expected = batched._train_batched(phase, batched.rows, Stream.of(0, "shuffle"))
    close = {"rtol": tolerance, "atol": tolerance}
    assert losses.keys() == expected.keys() == {"cross-entropy"}
    torch.testing.assert_close(losses["cross-entropy"], expected["cross-entropy"].double(), **close)
    after = {**batched.tables, **batched.params}
    for name, found in {**fused.tables, **fused.params}.items():
        assert float((found - before[name]).abs().max()) > 0, name
        torch.testing.assert_close(found, after[name], **close)


def test_rates_of_each_client_are_heeded():
    backbone, phase = pieces()
    rates = dict.fromkeys(phase.steps[0].rates, torch.linspace(0.0, 0.05, USERS))
    phase = replace(phase, steps=(replace(phase.steps[0], rates=rates),))
    assert fusable_tower(backbone, phase)
    fused, batched = cohort(backbone, torch.float64, False), cohort(backbone, torch.float64, False)
    before = fused.params["head"].clone()
    fused.train(Procedure((phase,), 4), Stream.of(0, "shuffle"))
    batched._train_batched(phase, batched.rows, Stream.of(0, "shuffle"))
    torch.testing.assert_close(fused.params["head"], batched.params["head"], rtol=1e-10, atol=1e-10)
    still = fused.rows.clients.tolist().index(0)
    assert torch.equal(fused.params["head"][still], before[still])


@pytest.mark.parametrize(
    "options", [{"variant": "gmf"}, {"optimiser": "sgd"}, {"reproduction": {"saturating_bce": True}}]
)
def test_what_the_loop_does_not_know_is_left_to_batched_operations(options):
    assert not fusable_tower(*pieces(**options))
