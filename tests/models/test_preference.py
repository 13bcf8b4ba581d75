import pytest
import torch

from confed.data.domain_split import split_domains
from confed.data.synthetic_domains import synthetic_domains
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.models.distributions import unnamed
from confed.models.preference import Batch
from confed.protocol import COLD
from tests.methods.companies import received, silos_of

SMALL = {"dim": 6, "batch_size": 64, "local_epochs": 2, "train_negatives": 4, "learning_rate": 0.02}


def companies(name="fppdm", **options):
    data = synthetic_domains(domains=2, users=80, items=40, interactions_per_user=8, overlap=0.9, seed=1)
    method = method_named(name)
    terms = Terms(method.config("tiny", {**SMALL, **options}), seed=0, dtype="float64")
    return method.trainer(terms, split_domains(data, COLD, 0), {})


def test_users_without_interactions_are_heard_about_but_not_told_about():
    trainer = companies()
    trainer.round(1)
    for silo in silos_of(trainer).values():
        assert len(silo.unheard) > 0
        assert (silo.data.positives.lengths[silo.unheard] == 0).all()
        assert int(silo.shared.known.sum()) == len(silo.shared.users) - len(silo.unheard)


def test_alignment_alone_gives_a_company_an_idea_of_them():
    """A new user's distribution moves towards what the other company says, though no batch of ratings has him."""

    def distance(alignment):
        trainer = companies(alignment=alignment)
        for number in range(1, 6):
            trainer.round(number)
        total = 0.0
        for name, silo in silos_of(trainer).items():
            place = ~silo.shared.known
            target = unnamed(received(trainer, name))[place]
            total += float((unnamed(silo.share())[place] - target).square().sum(dim=1).mean())
        return total

    assert distance(2.0) < 0.5 * distance(0.0)


def test_a_user_whom_nobody_else_knows_counts_as_nothing_in_the_mean():
    """λ_P ℓ_P by hand: squared distances of shared users, over all users of the batch and the unheard with it."""
    silo = next(iter(silos_of(companies(alignment=0.7)).values()))
    places = torch.arange(len(silo.shared.users))
    silo.target = torch.full((len(places), 2 * silo.dim), 0.5, dtype=torch.float64)
    shared = silo.shared.users[silo.shared.known][:3]
    own = torch.tensor([user for user in range(silo.data.users) if user not in silo.shared.users.tolist()][:2])
    assert len(shared) == 3 and len(own) == 2
    users, unheard = torch.cat([shared, own]), silo.unheard[:1]
    points = silo.user_points().detach()
    away = sum(float((points[user] - 0.5).square().sum()) for user in [*shared.tolist(), *unheard.tolist()])
    pulled = silo.pulled(Batch(2, 0, unheard), users, points[users], points[unheard])
    assert float(pulled) == pytest.approx(0.7 * away / 6)


def test_every_batch_passes_some_of_them_and_an_epoch_all():
    silo = next(iter(silos_of(companies()).values()))
    seen = []
    train = silo.train_batch

    def spy(batch, users, items):
        seen.append(batch.unheard)
        return train(batch, users, items)

    silo.train_batch = spy
    silo.train(1, None)
    steps = silo.steps()
    for epoch in range(2):
        passed = torch.cat(seen[epoch * steps : (epoch + 1) * steps])
        assert sorted(passed.tolist()) == sorted(silo.unheard.tolist())


def test_the_whole_loss_is_finite_for_degenerate_companies():
    """Identical users, one cluster, more clusters than users: nothing explodes."""
    for options in ({"clusters": 1}, {"clusters": 50}, {"init_deviation": 1e-12}):
        trainer = companies("fppdm++", **options)
        for number in (1, 2):
            done = trainer.round(number)
        assert all(torch.isfinite(t).all() for t in trainer.state().values())
        assert done.loss == done.loss
