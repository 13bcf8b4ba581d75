from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from confed.data.domain_split import ColdSplit, split_domains
from confed.data.domains import Domains
from confed.data.registry import load_domains
from confed.data.synthetic_domains import synthetic_domains
from confed.errors import ConfedError
from confed.protocol import COLD, WARM
from confed.testing import tiny_domains
from tests import realdata


def pair(users=60, overlap=0.7):
    return synthetic_domains(domains=2, users=users, items=40, interactions_per_user=8, overlap=overlap, seed=1)


def test_warm_has_the_users_whom_all_domains_know():
    data = tiny_domains.domains()
    cut = split_domains(data, WARM, 0)
    everyone = set.intersection(*(set(part.users) for part in data.parts.values()))
    for part in cut.parts.values():
        assert set(part.user_ids) == everyone
    assert cut.matching.people == cut.users == len(everyone)
    assert {len(numbers) for numbers in cut.matching.numbers.values()} == {len(everyone)}


def test_or_every_user_of_every_domain():
    data = tiny_domains.domains()
    cut = split_domains(data, WARM.model_copy(update={"population": "all"}), 0)
    for name, part in cut.parts.items():
        assert part.user_ids == data[name].users
    known = [user for part in cut.parts.values() for user in part.user_ids]
    assert cut.users == len(set(known))
    assert cut.matching.people == sum(known.count(user) > 1 for user in set(known)) < cut.users
    assert cut.items == sum(part.items for part in cut.parts.values())


def test_a_person_has_one_number_in_all_domains():
    cut = tiny_domains.cut()
    numbers = {}
    for name, part in cut.parts.items():
        for user, number in zip(cut.matching.users[name], cut.matching.numbers[name], strict=True):
            assert numbers.setdefault(part.user_ids[user], number) == number
    assert sorted(numbers.values()) == list(range(cut.matching.people))


def test_numbers_say_nothing_about_ids():
    """They are in the order of salted hashes: another seed has another salt and other numbers."""
    orders = []
    for seed in (0, 1):
        cut = split_domains(tiny_domains.domains(), WARM, seed)
        name = next(iter(cut.parts))
        assert not (np.diff(cut.matching.numbers[name]) > 0).all()
        orders.append(cut.matching.numbers[name].tolist())
    assert orders[0] != orders[1]


def test_cold_is_cdribs_cut():
    data = pair()
    cut = split_domains(data, COLD, 0)
    shared = sorted(set(data["a"].users) & set(data["b"].users), key=int)
    tenth = len(shared) // 10
    cold = {"b": shared[8 * tenth : 9 * tenth], "a": shared[9 * tenth :]}
    for name, part in cut.parts.items():
        assert isinstance(part, ColdSplit)
        assert part.user_ids == data[name].users
        has = {user: set(data[name].item_index[data[name].user_index == k]) for k, user in enumerate(data[name].users)}
        new = []
        for k, user in enumerate(part.user_ids):
            trained, held = set(part.training.positives[k]), [set(half[k]) for half in (part.validation, part.test)]
            if user in cold[name]:
                assert not trained
                assert sorted(map(len, held)) == [0, len(has[user])]
                assert held[0] | held[1] == has[user]
                new.append(bool(held[1]))
            else:
                assert trained == has[user]
                assert not held[0] | held[1]
        assert len(new) == len(cold[name])
        assert abs(sum(new) - len(new) / 2) < 1


def test_the_halves_depend_on_the_seed_and_nothing_else_does():
    one, same, other = (split_domains(pair(200), COLD, seed).parts["a"] for seed in (0, 0, 1))
    assert one.test.values.tolist() == same.test.values.tolist()
    assert one.test.values.tolist() != other.test.values.tolist()
    assert one.training.positives.values.tolist() == other.training.positives.values.tolist()


def test_cold_is_for_two_domains_with_twenty_shared_users():
    with pytest.raises(ConfedError, match='has 3: use protocol="warm"'):
        split_domains(tiny_domains.domains(), COLD, 0)
    with pytest.raises(ConfedError, match="it takes 20"):
        split_domains(pair(19, 1.0), COLD, 0)
    assert split_domains(pair(20, 1.0), COLD, 0).parts["b"].test.values.size


@pytest.mark.parametrize("population", ["shared", "all"])
def test_too_few_items_are_said_to_be_too_few(population):
    data = pair(30, 1.0)
    few = data["b"].frame.group_by("user", maintain_order=True).head(2)
    few = replace(data["b"], frame=pl.concat([few, few]))
    poor = replace(data, parts={"a": data["a"], "b": few})
    with pytest.raises(ConfedError, match=r"three items.*of a user: a \d+, b 2\)") as error:
        split_domains(poor, WARM.model_copy(update={"population": population}), 0)
    assert ("30 users are known to all domains" in str(error.value)) == (population == "shared")
    assert ("--set population=all" in error.value.message) == (population == "shared")


def test_companies_that_share_users_two_by_two():
    """Nobody is known to all three, and the error says what to do."""
    groups = {"a": "pq", "b": "qr", "c": "rp"}
    frames = {
        name: pl.DataFrame([{"user": f"{g}{n}", "item": i} for g in known for n in range(9) for i in range(5)])
        for name, known in groups.items()
    }
    data = load_domains(frames)
    with pytest.raises(ConfedError, match=r"0 users are known to all domains.*options=..population.: .all"):
        split_domains(data, WARM, 0)
    assert split_domains(data, WARM.model_copy(update={"population": "all"}), 0).matching.people == 27


def test_users_without_three_items_in_a_domain_are_left_out_of_it():
    data = pair(30, 1.0)
    few = data["a"].frame.filter((data["a"].frame["user"] != "1") | (data["a"].frame["user"].is_first_distinct()))
    changed = Domains({"a": type(data["a"])(few, time="real", name="a"), "b": data["b"]})
    shared = split_domains(changed, WARM, 0)
    every = split_domains(changed, WARM.model_copy(update={"population": "all"}), 0)
    assert all("1" not in part.user_ids for part in shared.parts.values())
    assert ["1" in part.user_ids for part in every.parts.values()] == [False, True]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("amazon-game-video", {"game": 155_036, "video": 156_091}),
        ("amazon-cloth-sport", {"cloth": 187_880, "sport": 163_291}),
    ],
)
def test_cold_training_rows_are_the_published_ones(name, rows):
    realdata.require(name)
    cut = split_domains(load_domains(name), COLD, 0)
    assert {domain: len(part.training.positives.values) for domain, part in cut.parts.items()} == rows


def test_warm_counts_of_real_data():
    realdata.require("amazon-game-video")
    cut = split_domains(load_domains("amazon-game-video"), WARM, 0)
    assert cut.users == 1_958
    assert {name: part.items for name, part in cut.parts.items()} == {"game": 7_508, "video": 6_704}
