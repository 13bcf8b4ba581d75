import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from confed.messages import Agreement, Sums, Upload, summed
from confed.server.strategies import Barycentre
from confed.server.uploads import Uploads

NAMES = ("mean", "deviation")


def rows(people, seed, width=3, dtype=torch.float64):
    """What company number `seed` says of some people."""
    table = torch.randn(1, len(people), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tensors = {"mean": table.to(dtype), "deviation": table.exp().to(dtype)}
    return Upload(torch.tensor([seed]), tensors, torch.tensor(people, dtype=torch.int64))


def server(known, start=None):
    """Of companies that know these people."""
    strategy = Barycentre(NAMES, [torch.tensor(people, dtype=torch.int64) for people in known])
    strategy.start(start or {}, torch.arange(len(known)), 0)
    return strategy


def aggregate(strategy, uploads, people, width=3):
    """A round of all companies, as the sites sum it up: against what they received."""
    dtype = uploads[0].tensors["mean"].dtype
    shapes = dict.fromkeys(NAMES, (people, width))
    agreed = Agreement(people, dtype, shapes, {}, strategy.uploads, strategy.plan, by_rows=True)
    bases = agreed.bases(strategy.download(torch.arange(2)).of(torch.arange(len(strategy.known))))
    parts = [{name: summed(one, name, "holders", bases[name]) for name in NAMES} for one in uploads]
    sums = Sums(0, 0.0, 0, parts[0])
    for part in parts[1:]:
        sums += Sums(0, 0.0, 0, part)
    strategy.aggregate(Uploads(sums, strategy.plan, agreed.bases(strategy.download(torch.arange(2)))), 1)
    return strategy.state()


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4), st.integers(1, 3))
def test_means_over_those_who_know_a_person(known, rounds):
    """In the first round, when nobody received anything, and against what was received later on."""
    known = [sorted(people) for people in known]
    strategy = server(known)
    for number in range(rounds):
        uploads = [rows(people, 10 * number + seed) for seed, people in enumerate(known)]
        state = aggregate(strategy, uploads, 8)
    for name in NAMES:
        for person in range(8):
            told = [u.tensors[name][0, u.rows.tolist().index(person)] for u in uploads if person in u.rows.tolist()]
            expected = torch.stack(told).mean(dim=0) if told else torch.zeros(3, dtype=torch.float64)
            torch.testing.assert_close(state[name][person], expected)


def test_it_is_the_wasserstein_barycentre():
    """Minimise Σ_k W2² numerically: the closed form of Eq. 7 comes out."""
    uploads = [rows([0], seed) for seed in range(3)]
    state = aggregate(server([[0]] * 3), uploads, 1)

    def total(x):
        return sum(
            np.square(x[:3] - u.tensors["mean"][0, 0].numpy()).sum()
            + np.square(x[3:] - u.tensors["deviation"][0, 0].numpy()).sum()
            for u in uploads
        )

    found = minimize(total, np.ones(6)).x
    np.testing.assert_allclose(state["mean"][0].numpy(), found[:3], atol=1e-5)
    np.testing.assert_allclose(state["deviation"][0].numpy(), found[3:], atol=1e-5)


def test_the_order_of_companies_does_not_matter_in_single_precision():
    known = [list(range(5))] * 3
    uploads = [rows(people, seed, dtype=torch.float32) for seed, people in enumerate(known)]
    one, other = (aggregate(server(known), told, 5)["mean"] for told in (uploads, uploads[::-1]))
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    assert one.dtype == torch.float32


def test_what_nobody_spoke_of_stays():
    strategy = server([[0, 1, 2]], {name: torch.full((3, 3), 7.0, dtype=torch.float64) for name in NAMES})
    state = aggregate(strategy, [rows([1], 0)], 3)
    assert (state["mean"][[0, 2]] == 7).all()
    torch.testing.assert_close(state["mean"][1], rows([1], 0).tensors["mean"][0, 0])


def test_nothing_to_download_before_the_first_upload():
    known = [[2, 0], [0, 1, 2]]
    strategy = server(known)
    assert strategy.download(torch.arange(2)).bytes_to(torch.arange(2)) == 0
    assert strategy.download(torch.arange(2)).of(torch.tensor([0])).rows is None
    state = aggregate(strategy, [rows([0, 1, 2], 1)], 3)
    sent = strategy.download(torch.arange(2)).of(torch.tensor([0]))
    assert sent.rows.tolist() == [0, 2], "its own people, and nobody else"
    assert torch.equal(sent.tables["mean"][0], state["mean"][[0, 2]])
    assert strategy.download(torch.arange(2)).bytes_to(torch.tensor([0])) == len(sent.to_bytes()) > 2 * 2 * 3 * 8
    again = server(known)
    again.load(state)
    assert torch.equal(again.state()["mean"], state["mean"])
    assert torch.equal(again.download(torch.arange(2)).of(torch.tensor([0])).tables["mean"], sent.tables["mean"])


def test_the_server_may_begin_with_something():
    strategy = server([[0, 2]], {"mean": torch.ones(3, 3), "deviation": torch.ones(3, 3)})
    assert strategy.download(torch.arange(2)).of(torch.tensor([0])).tables["mean"].shape == (1, 2, 3)


def test_companies_that_tell_nothing_do_not_tell_their_loss():
    assert Barycentre(NAMES, []).uploads == {*NAMES, "loss"}
    assert set(Barycentre(NAMES, []).plan) == set(NAMES)
    assert Barycentre((), []).uploads == frozenset()
