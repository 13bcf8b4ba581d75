"""FedRAP's fused training against the batched form."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from confed.clients.backbones import Additive
from confed.clients.cohort import Cohort
from confed.clients.fused import fusable
from confed.clients.objectives.additive import Curriculum, Small
from confed.clients.procedures import Step
from confed.clients.sampling import draw_rows
from confed.clients.store import ClientStore
from confed.messages import Download
from confed.methods.registry import method_named
from confed.random import Stream
from confed.testing.tiny import ITEMS, USERS, cut

BACKBONE = Additive(ITEMS, 4, 0.5)
OPTIONS = {"learning_rate": 0.3, "item_rate": 5.0, "local_epochs": 4, "sparsity": 0.2, "independence": 0.05}


def cohort(dtype):
    shared = {p.name: p.initial(0, dtype)[None] for p in BACKBONE.named(scope="shared")}
    rows = draw_rows(cut().training, np.arange(USERS), 4, Stream.of(0, "n"), dtype)
    store = ClientStore(BACKBONE, USERS, 0, dtype)
    return Cohort(BACKBONE, store, Download(shared, torch.zeros(USERS, dtype=torch.int64)), rows)


def procedure(**options):
    return method_named("fedrap").config("tiny", {**OPTIONS, **options}).procedure()


def phase(**options):
    (found,) = procedure(**options).at(3)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.003, "tolerance": 0.1},
        {"regulariser": "l2", "batch_decay": 1.0, "weight_decay": 0.0, "tolerance": 0.0},
        {"regulariser": "none"},
        {"independence": 0.0},
    ],
)
@pytest.mark.parametrize("batch_size", [7, 256])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 1e-3)])
def test_fused_equals_batched(options, batch_size, dtype, tolerance):
    chosen = procedure(batch_size=batch_size, **options)
    (left,) = chosen.at(3)
    assert fusable(BACKBONE, left)
    fused, batched = cohort(dtype), cohort(dtype)
    losses = fused.train(chosen, Stream.of(0, "shuffle"), 3)
    batched.round = 3
    expected = batched._train_batched(left, batched.rows, Stream.of(0, "shuffle"))
    close = {"rtol": tolerance, "atol": tolerance}
    assert losses.keys() == expected.keys()
    for name, loss in expected.items():
        torch.testing.assert_close(losses[name], loss, **close)
    torch.testing.assert_close(fused.tables, batched.tables, **close)
    torch.testing.assert_close(fused.params, batched.params, **close)
    assert fused.scale.keys() == batched.scale.keys()
    for name, scale in batched.scale.items():
        torch.testing.assert_close(fused.scale[name], scale, **close)


@pytest.mark.parametrize("options", [{"regulariser": "nuclear"}, {"regulariser": "max"}, {"terms": "table"}])
def test_what_it_does_not_know_is_left_to_the_batched_way(options):
    assert not fusable(BACKBONE, phase(**options))


def test_a_term_on_a_part_of_the_parameters_is_left_to_the_batched_way():
    step = phase().steps[0]
    some = replace(phase(), steps=(Step({"items": 1.0}, step.terms),))
    twice = replace(phase(), steps=(replace(step, terms=(*step.terms, Small("items", Curriculum(1.0)))),))
    assert not fusable(BACKBONE, some)
    assert not fusable(BACKBONE, twice)
