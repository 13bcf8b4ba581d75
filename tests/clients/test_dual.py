"""Fed3CR's terms and transfers, against autograd of the formulas as they are printed, and by hand."""

import math

import numpy as np
import pytest
import torch
from benchmarks import plain

from confed.clients.backbones import AdaptiveTransfer, Dot, DualTable, LearnedTransfer, NoTransfer
from confed.clients.backbones.dual import prototype
from confed.clients.objectives import dual
from confed.clients.objectives.dense import Whole
from confed.random import Stream

CLIENTS, ITEMS, DIM = 3, 17, 4


def tables(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(CLIENTS, ITEMS, DIM, generator=generator, dtype=torch.float64) for _ in range(2)]


def liked():
    mask = torch.zeros(CLIENTS, ITEMS, dtype=torch.bool)
    for client, items in enumerate(([0, 3, 7], [1], [2, 5, 6, 16])):
        mask[client, items] = True
    return mask


def whole(shared, own, step=0):
    stream = Stream.of(0, "dense")
    return Whole({"enhanced": shared, "own": own}, {}, liked(), torch.full((CLIENTS,), -1), stream, step)


def probabilities(table, mask, temperature, shifted):
    cosines = torch.nn.functional.cosine_similarity(table[mask].mean(dim=0)[None], table)
    if shifted:
        return (1.0 + cosines) / (1.0 + cosines).sum()
    return torch.softmax(cosines / temperature, dim=0)


def list_net(shared, own, mask, temperature=1.0, shifted=False, divergence=False):
    p, q = (probabilities(table, mask, temperature, shifted) for table in (own, shared))
    if divergence:
        return 0.5 * (p * (p / q).log()).sum() + 0.5 * (q * (q / p).log()).sum()
    return -0.5 * (p * q.log()).sum() - 0.5 * (q * p.log()).sum()


def hsic(shared, own, mask):
    kernels = []
    for rows in (shared, own):
        squares = torch.cdist(rows, rows).square()
        kernels.append((-squares / squares.detach().flatten().median()).exp())
    centre = torch.eye(len(own), dtype=own.dtype) - 1.0 / len(own)
    return torch.trace(centre @ kernels[0] @ centre @ kernels[1]) / (len(own) - 1) ** 2


def info_nce(shared, own, mask):
    scores = torch.nn.functional.cosine_similarity(shared[:, None], own[None], dim=2) / 0.2
    target = torch.arange(len(own))
    cross = torch.nn.functional.cross_entropy
    return 0.5 * (cross(scores, target) + cross(scores.T, target))


FORMULAS = {
    "La": (dual.ListNet(0.7), list_net),
    "La, sharper": (dual.ListNet(0.7, 0.2), lambda s, o, m: list_net(s, o, m, 0.2)),
    "La, shifted": (dual.ListNet(0.7, top_one="shifted"), lambda s, o, m: list_net(s, o, m, shifted=True)),
    "La, divergence": (dual.ListNet(0.7, divergence=True), lambda s, o, m: list_net(s, o, m, divergence=True)),
    "Lo": (dual.Orthogonal(0.7), lambda s, o, m: (s.T @ o / len(o)).square().sum() / DIM),
    "Ls": (dual.AlikeRows(0.7), lambda s, o, m: (1.0 - torch.nn.functional.cosine_similarity(s, o)).mean()),
    "L2": (dual.FarApart(0.7), lambda s, o, m: -(s - o).square().sum(dim=1).mean() / DIM),
    "Lc": (dual.Contrast(0.7), info_nce),
    "Lm": (dual.Independent(0.7), hsic),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values_and_gradients_are_those_of_the_printed_formula(name):
    term, formula = FORMULAS[name]
    values, gradients = term.gradients(whole(*tables()))
    for client in range(CLIENTS):
        shared, own = (table[client].clone().requires_grad_() for table in tables())
        expected = 0.7 * formula(shared, own, liked()[client])
        assert float(values[client]) == pytest.approx(float(expected.detach()), rel=1e-9)
        by_shared, by_own = torch.autograd.grad(expected, (shared, own))
        torch.testing.assert_close(gradients["enhanced"][client], by_shared, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(gradients["own"][client], by_own, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", FORMULAS)
def test_degenerate_tables_give_finite_gradients(name):
    """Rows of zeros, equal rows, nobody's favourites."""
    term, _ = FORMULAS[name]
    shared, own = tables()
    shared[0] = 0.0
    own[1] = own[1, :1]
    seen = whole(shared, own)
    seen.positives[2] = False
    values, gradients = term.gradients(seen)
    assert bool(torch.isfinite(values).all())
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients.values())


def test_views_that_prefer_nothing_disagree_by_the_logarithm_of_the_number_of_items():
    values, _ = dual.ListNet(1.0).gradients(whole(torch.zeros(CLIENTS, ITEMS, DIM), torch.zeros(CLIENTS, ITEMS, DIM)))
    assert values.tolist() == pytest.approx([math.log(ITEMS)] * CLIENTS)


def test_orthogonality_by_hand():
    """Two items, two features: E = [[1, 3], [2, 4]] / 2 for the identity as shared table."""
    shared, own = torch.eye(2)[None], torch.tensor([[[1.0, 3.0], [2.0, 4.0]]])
    value, _ = dual.Orthogonal(1.0).gradients(
        Whole({"enhanced": shared, "own": own}, {}, torch.ones(1, 2, dtype=torch.bool), -torch.ones(1), None, 0)
    )
    assert float(value) == pytest.approx((1 + 9 + 4 + 16) / 4 / 2)


def test_pairwise_terms_look_at_a_sample_that_changes_with_the_step(monkeypatch):
    monkeypatch.setattr(dual, "_SAMPLE", 6)
    shared, own = tables()
    touched = []
    for step in (0, 0, 1):
        _, gradients = dual.Contrast(1.0).gradients(whole(shared, own, step))
        touched.append(gradients["own"].abs().sum(dim=(0, 2)) > 0)
        assert int(touched[-1].sum()) == 6
    assert torch.equal(touched[0], touched[1]) and not torch.equal(touched[0], touched[2])


def test_prototypes_are_means_of_the_favourites():
    table = tables()[0]
    expected = torch.stack([table[client, mask].mean(dim=0) for client, mask in enumerate(liked())])
    torch.testing.assert_close(prototype(table, liked()), expected)
    torch.testing.assert_close(prototype(table[:1], liked())[1], table[0, 1])
    assert prototype(table, torch.zeros_like(liked())).abs().max() == 0.0


def params_of(transfer, clients, seed=1):
    return {spec.name: spec.initial(seed, torch.float64).expand(clients, *spec.shape) for spec in transfer.params}


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("residual", [False, True])
def test_the_adaptive_transfer_against_plain_layers(layers, residual):
    transfer = AdaptiveTransfer(DIM, layers, 10.0, residual=residual)
    params, (shared, own) = params_of(transfer, CLIENTS), tables()
    enhanced, same = transfer(params, shared, own, liked())
    assert same is own
    for client, mask in enumerate(liked()):
        hidden = torch.cat([shared[client, mask].mean(dim=0), own[client, mask].mean(dim=0)])
        for layer in range(layers):
            linear = torch.nn.functional.linear
            hidden = linear(
                torch.relu(hidden) if layer else hidden,
                params[f"generator_weight_{layer}"][client],
                params[f"generator_bias_{layer}"][client],
            )
        matrix = 10.0 * hidden.view(DIM, DIM) + (torch.eye(DIM) if residual else 0.0)
        torch.testing.assert_close(enhanced[client], torch.stack([matrix @ row for row in shared[client]]))


def test_gradients_of_the_adaptive_transfer_against_finite_differences():
    transfer = AdaptiveTransfer(DIM, 3, 10.0)
    shared, own = (table.requires_grad_() for table in tables())
    params = {name: value.clone().requires_grad_() for name, value in params_of(transfer, CLIENTS).items()}

    def fused(shared, own, *weights):
        return transfer(dict(zip(params, weights, strict=True)), shared, own, liked())[0]

    assert torch.autograd.gradcheck(fused, (shared, own, *params.values()))


def test_detached_prototypes_carry_no_gradient_to_the_tables():
    """What is left of the shared table's gradient is that through C W^T, with W held fixed."""
    transfer = AdaptiveTransfer(DIM, 2, 10.0, detach_prototypes=True)
    shared, own = (table.requires_grad_() for table in tables())
    params = params_of(transfer, CLIENTS)
    enhanced, _ = transfer(params, shared, own, liked())
    assert torch.autograd.grad(enhanced.sum(), own, allow_unused=True, retain_graph=True) == (None,)
    (gradient,) = torch.autograd.grad(enhanced.sum(), shared)
    matrix = transfer.matrix(params, shared, own, liked()).detach()
    torch.testing.assert_close(gradient, (torch.ones_like(shared) @ matrix).detach())


def test_learned_transfers_begin_as_the_identity():
    shared, own = tables()
    for unified in (False, True):
        transfer = LearnedTransfer(DIM, unified=unified)
        params = params_of(transfer, 1)
        for table, same in zip(transfer(params, shared, own, liked()), (shared, own), strict=True):
            torch.testing.assert_close(table, same)
        doubled = transfer({"transfer": 2.0 * params["transfer"]}, shared, own, liked())
        torch.testing.assert_close(doubled[0], 2.0 * shared)
        torch.testing.assert_close(doubled[1], (2.0 if unified else 1.0) * own)


def test_a_dual_table_scores_with_the_sum_and_with_either_view():
    backbone = DualTable(Dot(ITEMS, DIM, 1.0), NoTransfer(), 0.01)
    shared, own = tables()
    params = {"user": torch.randn(CLIENTS, DIM, dtype=torch.float64)}
    seen = backbone.look(params, {"items": shared, "own": own}, liked())
    expected = torch.einsum("cid,cd->ci", shared + own, params["user"])
    torch.testing.assert_close(backbone.logits(params, seen), expected)
    torch.testing.assert_close(backbone.scored_alone(params, own), torch.einsum("cid,cd->ci", own, params["user"]))


def test_the_oracle_s_terms_are_the_same_formulas():
    shared, own = (table[0] for table in tables())
    mask = liked()[0]
    positives = torch.from_numpy(np.flatnonzero(mask.numpy()))
    torch.testing.assert_close(plain.list_consistency(shared, own, positives, 1.0), list_net(shared, own, mask))
    torch.testing.assert_close(plain.orthogonality(shared, own), FORMULAS["Lo"][1](shared, own, mask))
