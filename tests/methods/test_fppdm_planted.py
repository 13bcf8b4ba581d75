"""Three synthetic domains whose truth is known: federating helps the sparse one, and the planted groups are found.

In a small world with clear groups, at ten times the paper's λ_P and a higher learning rate; docs/fppdm.md has a harder
one, with the paper's settings too.
"""

from functools import cache

import pytest
from sklearn.metrics import adjusted_rand_score

import confed
from confed.data.synthetic_domains import synthetic_domains, synthetic_domains_truth
from confed.models.compactness import CoClustering
from confed.random import Stream

WORLD = {"domains": 3, "users": 150, "items": 80, "interactions_per_user": 14}
WORLD |= {"groups": 3, "categories": 9, "affinity": 0.9, "seed": 0}
OPTIONS = {"dim": 16, "batch_size": 128, "local_epochs": 3, "train_negatives": 5, "learning_rate": 0.01}
OPTIONS |= {"init_deviation": 0.1, "negatives": 30, "more_negatives": []}


@cache
def run(method, folder, **options):
    data = synthetic_domains(**WORLD)
    several = options.get("variant") != "alone"
    return confed.run(method, data, rounds=6, options={**OPTIONS, **options}, out=folder, all_views=several)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("planted")


def test_federating_helps_the_sparse_domain(folder):
    """Its users' groups show elsewhere: by the barycentre they are served better than by what it knows alone."""
    alone = run("fppdm", folder, variant="alone").summary["domains"]["a"]["hr@10"]
    views = run("fppdm", folder, alignment=0.5).summary["views"]
    assert views["global"]["domains"]["a"]["hr@10"] > alone + 2
    assert views["local"]["domains"]["a"]["hr@10"] > alone


def test_co_clustering_finds_the_planted_groups(folder):
    """The clusters of all users agree with the groups. They do so without ℓ_C as well: it acts on what it finds."""
    found = run("fppdm++", folder, alignment=0.5, clusters=3)
    truth = synthetic_domains_truth(**WORLD)
    agreement = {}
    for name, silo in found.companies().items():
        points = silo.user_points().detach()
        group = CoClustering(clusters=3).assign(points, Stream.of(0, "all users"), 0).argmax(dim=1)
        planted = [truth[user] for user in found.user_ids(name)]
        agreement[name] = adjusted_rand_score(planted, group)
    assert agreement["b"] > 0.8
    assert agreement["c"] > 0.8
    assert agreement["a"] > 0.2, "five items a user leave much in the dark"
