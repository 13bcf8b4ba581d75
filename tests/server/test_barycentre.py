import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from confed.messages import PeopleRows
from confed.server.barycentre import Barycentre


def rows(people, seed, width=3):
    table = torch.randn(len(people), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return PeopleRows(torch.tensor(people, dtype=torch.int64), {"mean": table, "deviation": table.exp()})


@settings(deadline=None)
@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4))
def test_means_over_those_who_know_a_person(known):
    uploads = [rows(sorted(people), seed) for seed, people in enumerate(known)]
    server = Barycentre(8)
    server.aggregate(uploads)
    for name in ("mean", "deviation"):
        for person in range(8):
            told = [u.tensors[name][u.people.tolist().index(person)] for u in uploads if person in u.people.tolist()]
            expected = torch.stack(told).mean(dim=0) if told else torch.zeros(3, dtype=torch.float64)
            torch.testing.assert_close(server.tables[name][person], expected)


def test_it_is_the_wasserstein_barycentre():
    """Minimise Σ_k W2² numerically: the closed form of Eq. 7 comes out."""
    uploads = [rows([0], seed) for seed in range(3)]
    server = Barycentre(1)
    server.aggregate(uploads)

    def total(x):
        return sum(
            np.square(x[:3] - u.tensors["mean"][0].numpy()).sum()
            + np.square(x[3:] - u.tensors["deviation"][0].numpy()).sum()
            for u in uploads
        )

    found = minimize(total, np.ones(6)).x
    np.testing.assert_allclose(server.tables["mean"][0].numpy(), found[:3], atol=1e-5)
    np.testing.assert_allclose(server.tables["deviation"][0].numpy(), found[3:], atol=1e-5)


def test_the_order_of_companies_does_not_matter_in_single_precision():
    uploads = [rows(list(range(5)), seed) for seed in range(3)]
    single = [PeopleRows(u.people, {name: t.float() for name, t in u.tensors.items()}) for u in uploads]
    one, other = Barycentre(5), Barycentre(5)
    one.aggregate(single)
    other.aggregate(single[::-1])
    torch.testing.assert_close(one.tables["mean"], other.tables["mean"], rtol=1e-6, atol=1e-7)
    assert one.tables["mean"].dtype == torch.float32


def test_what_nobody_spoke_of_stays():
    server = Barycentre(3, {"mean": torch.full((3, 3), 7.0), "deviation": torch.full((3, 3), 7.0)})
    server.aggregate([rows([1], 0)])
    assert (server.tables["mean"][[0, 2]] == 7).all()
    assert (server.tables["mean"][1] != 7).all()


def test_nothing_to_download_before_the_first_upload():
    server = Barycentre(3)
    assert server.download(torch.tensor([0, 1])) is None
    server.aggregate([rows([0, 1, 2], 0)])
    sent = server.download(torch.tensor([2, 0]))
    assert sent.people.tolist() == [2, 0]
    assert torch.equal(sent.tensors["mean"], server.tables["mean"][[2, 0]])
    assert sent.nbytes == len(sent.to_bytes()) > 2 * 2 * 3 * 8
    again = Barycentre(3)
    again.load(server.state())
    assert torch.equal(again.tables["mean"], server.tables["mean"])
