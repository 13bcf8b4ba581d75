import math

import pytest
import torch
from benchmarks.plain import supervised_contrast

from confed.clients.objectives import SupCon, Whole
from confed.clients.objectives.dense import Categories
from confed.clients.objectives.supcon import (
    _denominators,
    _denominators_of_all,
    code_form,
    paper_form,
)
from confed.random import Stream

ITEMS, WIDTH = 600, 5


def rows(items=ITEMS, scale=1.0):
    generator = torch.Generator().manual_seed(1)
    return scale * torch.randn(items, WIDTH, generator=generator, dtype=torch.float64)


def membership(items=ITEMS):
    """Seven categories, and the last item alone in its own."""
    return torch.cat([torch.arange(items - 1) % 7, torch.tensor([7])])


def by_loop(table, of, temperature, form):
    """The definitions of D-15, one anchor and one positive at a time."""
    if form == "code":
        table = table / table.norm(dim=1, keepdim=True)
    total = 0.0
    for i in range(len(table)):
        positives = [z for z in range(len(table)) if z != i and of[z] == of[i]]
        if not positives:
            continue
        exponents = {a: float(table[i] @ table[a]) / temperature for a in range(len(table)) if a != i}
        denominator = sum(math.exp(value) for value in exponents.values())
        if form == "code":
            total -= sum(exponents[z] - math.log(denominator) for z in positives) / len(positives)
        else:
            total -= math.log(sum(math.exp(exponents[z]) for z in positives) / len(positives) / denominator)
    return (temperature / 0.5 if form == "code" else 1.0) / len(table) * total


@pytest.mark.parametrize(("form", "function"), [("code", code_form), ("paper", paper_form)])
def test_value_equals_a_brute_force_loop(form, function):
    table, of = rows(24), membership(24)
    value, _ = function(table, Categories(of), 0.2, torch.arange(24))
    assert float(value) == pytest.approx(by_loop(table, of, 0.2, form), rel=1e-12)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_code_gradient_equals_autograd(temperature):
    """Several strips, the last one not full, and an item without a partner."""
    table = rows().requires_grad_()
    expected = supervised_contrast(table, membership(), temperature)
    expected.backward()
    value, gradient = code_form(table.detach(), Categories(membership()), temperature, torch.arange(ITEMS))
    torch.testing.assert_close(value, expected.detach(), rtol=1e-11, atol=0)
    torch.testing.assert_close(gradient, table.grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("items", [1, 255, 256, 257, 600])
def test_half_of_the_matrix_gives_what_all_of_it_gives(items):
    unit = torch.nn.functional.normalize(rows(items), dim=1)
    anchors = torch.arange(items)[membership(items) < 7] if items > 1 else torch.arange(0)
    for half, whole_ in zip(_denominators_of_all(unit, anchors, 0.1), _denominators(unit, anchors, 0.1), strict=True):
        torch.testing.assert_close(half, whole_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [code_form, paper_form])
def test_gradient_equals_finite_differences(function):
    table, of = rows(40, scale=0.7), Categories(membership(40))
    _, gradient = function(table, of, 0.3, torch.arange(40))
    direction = torch.randn(table.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ahead, behind = (function(table + s * 1e-6 * direction, of, 0.3, torch.arange(40))[0] for s in (1, -1))
    assert float((gradient * direction).sum()) == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("function", [code_form, paper_form])
def test_sampled_anchors_are_unbiased(function):
    """The mean over all sets of one anchor is the whole: value and gradient."""
    table, of = rows(30), Categories(membership(30))
    value, gradient = function(table, of, 0.2, torch.arange(30))
    samples = [function(table, of, 0.2, torch.tensor([anchor])) for anchor in range(30)]
    torch.testing.assert_close(torch.stack([v for v, _ in samples]).mean(), value)
    torch.testing.assert_close(torch.stack([g for _, g in samples]).mean(dim=0), gradient)


def test_a_zero_row_has_no_direction_and_gets_no_gradient():
    table = rows(20)
    table[4] = 0.0
    value, gradient = code_form(table, Categories(membership(20)), 0.1, torch.arange(20))
    assert bool(torch.isfinite(gradient).all()) and math.isfinite(float(value))
    assert not gradient[4].any()


def test_the_printed_form_survives_large_rows():
    value, gradient = paper_form(rows(30, scale=100.0), Categories(membership(30)), 0.1, torch.arange(30))
    assert math.isfinite(float(value)) and bool(torch.isfinite(gradient).all())


def whole(tables, alike, of=None, step=0):
    side = {} if of is None else {"membership": of.to(torch.uint8)}
    clients, items = len(alike), next(iter(tables.values())).shape[1]
    liked = torch.zeros(clients, items, dtype=torch.bool)
    return Whole(tables, side, liked, torch.tensor(alike), Stream.of(0, "dense"), step)


def test_without_categories_there_is_no_term():
    values, gradients = SupCon(("items",), 1.0, 0.1).gradients(whole({"items": rows(9).expand(3, -1, -1)}, [0, 0, -1]))
    assert not values.any() and not gradients


def test_clients_with_the_same_table_share_one_gradient(monkeypatch):
    import confed.clients.objectives.supcon as module

    calls = []
    monkeypatch.setattr(module, "code_form", lambda *a: calls.append(a) or code_form(*a))
    shared, own = rows(21), rows(21) * 2 + 1
    term = SupCon(("items",), 0.5, 0.1)
    values, gradients = term.gradients(whole({"items": torch.stack([shared, own, shared])}, [3, -1, 3], membership(21)))
    assert len(calls) == 2
    for client, table in enumerate((shared, own, shared)):
        value, gradient = code_form(table, Categories(membership(21)), 0.1, torch.arange(21))
        assert float(values[client]) == pytest.approx(0.5 * float(value))
        torch.testing.assert_close(gradients["items"][client], 0.5 * gradient)


@pytest.mark.parametrize(("form", "function"), [("code", code_form), ("paper", paper_form)])
def test_the_form_asked_for(form, function):
    values, gradients = SupCon(("items",), 0.5, 0.2, form=form).gradients(
        whole({"items": rows(21)[None]}, [-1], membership(21))
    )
    value, gradient = function(rows(21), Categories(membership(21)), 0.2, torch.arange(21))
    assert float(values[0]) == pytest.approx(0.5 * float(value))
    torch.testing.assert_close(gradients["items"][0], 0.5 * gradient)


def test_two_tables_side_by_side_are_one():
    left, right = rows(21)[:, :2], rows(21)[:, 2:]
    term = SupCon(("left", "right"), 1.0, 0.1)
    _, gradients = term.gradients(whole({"left": left[None], "right": right[None]}, [-1], membership(21)))
    _, expected = code_form(rows(21), Categories(membership(21)), 0.1, torch.arange(21))
    torch.testing.assert_close(torch.cat([gradients["left"], gradients["right"]], dim=2)[0], expected)


def test_many_items_are_sampled_anew_every_step():
    term = SupCon(("items",), 1.0, 0.1, anchors=40, exact_up_to=100)
    seen = [whole({"items": rows()[None]}, [-1], membership(), step) for step in (0, 0, 1)]
    draws = [of_step.drawn(ITEMS, 40) for of_step in seen]
    assert len(torch.unique(draws[0])) == 40
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    for of_step, anchors in zip(seen, draws, strict=True):
        expected, _ = code_form(rows(), Categories(membership()), 0.1, anchors)
        assert float(term.gradients(of_step)[0]) == pytest.approx(float(expected))
    exact, _ = code_form(rows(), Categories(membership()), 0.1, torch.arange(ITEMS))
    assert float(SupCon(("items",), 1.0, 0.1).gradients(seen[0])[0]) == pytest.approx(float(exact))
