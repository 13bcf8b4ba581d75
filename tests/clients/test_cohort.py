"""Local training itself is held against the oracle, method by method (tests/oracle.py). Here: the rest."""

import numpy as np
import torch

from confed.clients.backbones import Dot, NeuMF
from confed.clients.cohort import Cohort
from confed.clients.objectives import BCE
from confed.clients.procedures import Phase, Procedure, Step
from confed.clients.sampling import draw_rows
from confed.clients.standing import item_rows, stored_scores, versions
from confed.clients.store import ClientStore
from confed.initial import normal
from confed.messages import Download
from confed.random import Stream
from confed.testing.tiny import ITEMS, USERS, cut


def download(backbone, tables=1):
    shared = {p.name: p.initial(0, torch.float64) for p in backbone.named(scope="shared")}
    stacked = {name: torch.stack([value + v for v in range(tables)]) for name, value in shared.items()}
    return Download(stacked, torch.arange(USERS) % tables)


def test_each_client_is_scored_with_its_own_version():
    """Group models: clients of version 1 see other tables than clients of version 0."""
    backbone = Dot(ITEMS, 3, 1.0)
    store = ClientStore(backbone, USERS, 0, torch.float64)
    sent = download(backbone, tables=2)
    scores = stored_scores(backbone, store, sent, torch.arange(USERS), cut().training.positives)
    for client in (0, 1, 7):
        expected = sent.tables["items"][client % 2] @ store.tensors["user"][client]
        torch.testing.assert_close(scores[client], expected)


def test_a_cohort_starts_from_what_each_client_downloaded():
    backbone = NeuMF(ITEMS, 3, (3, 2), "neumf", normal(1.0))
    store = ClientStore(backbone, USERS, 0, torch.float64)
    sent = download(backbone, tables=2)
    rows = draw_rows(cut().training, np.array([4, 5]), 4, Stream.of(0, "n"), torch.float64)
    cohort = Cohort(backbone, store, sent, rows)
    for position, client in enumerate(rows.clients):
        torch.testing.assert_close(cohort.params["head"][position], sent.tables["head"][client % 2])
    untrained = cohort.scores()
    torch.testing.assert_close(
        untrained, stored_scores(backbone, store, sent, cohort.clients, cut().training.positives)
    )


def test_one_shared_version_is_not_copied_per_client():
    backbone = Dot(ITEMS, 3, 1.0)
    store = ClientStore(backbone, USERS, 0, torch.float64)
    assert item_rows(backbone, store, download(backbone), torch.arange(9))["items"].shape == (1, ITEMS, 3)
    assert versions(torch.zeros(2, 5), torch.tensor([1, 0, 1])).shape == (3, 5)


def test_a_rate_per_client_follows_the_client_not_its_place():
    """Clients are reordered by length; a rate of 0 must hold still the client it was given to."""
    backbone = Dot(ITEMS, 3, 1.0)
    store = ClientStore(backbone, USERS, 0, torch.float64)
    rows = draw_rows(cut().training, np.arange(USERS), 4, Stream.of(0, "n"), torch.float64)
    cohort = Cohort(backbone, store, download(backbone), rows)
    before = cohort.params["user"].clone()
    rates = torch.full((USERS,), 0.1, dtype=torch.float64)
    rates[[4, 17]] = 0.0
    phase = Phase((Step({"user": rates}, (BCE(),)),), epochs=1, batch_size=16)
    cohort.train(Procedure((phase,), negatives=4), Stream.of(0, "s"))
    still = (cohort.params["user"] == before).all(dim=1)
    assert sorted(cohort.clients[still].tolist()) == [4, 17]
