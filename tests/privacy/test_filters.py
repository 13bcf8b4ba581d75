"""The chain on uploads, with members of both halves, for people and companies."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from confed.errors import ConfedError
from confed.messages import Agreement, PartialSum, Sums, Upload, dense
from confed.methods.base import Terms
from confed.methods.registry import method_named
from confed.privacy.filters import Chain, Filter
from confed.runs.settings import resolve
from confed.testing import assert_close_states, tiny
from confed.testing.conformance import CompanyConformance, PeopleConformance
from tests.golden.cases import SMALL


@dataclass(frozen=True)
class Scaled(Filter):
    """Clients send changes `factor` times as large; the server divides the sums again."""

    factor: float
    name: ClassVar[str] = "scale"

    def leaving(self, upload, agreed, bases, key):
        tensors = dict(upload.tensors)
        for name in agreed.plan:
            base = bases[name] if upload.rows is None else bases[name][upload.rows]
            tensors[name] = base + self.factor * (dense(tensors[name]) - base)
        return Upload(upload.clients, tensors, upload.rows)

    def arrived(self, sums):
        of = {
            name: PartialSum(
                part.changes / self.factor, part.weight, None if part.rest is None else part.rest / self.factor
            )
            for name, part in sums.of.items()
        }
        return Sums(sums.participants, sums.loss, sums.nbytes, of)


@dataclass(frozen=True)
class Shifted(Filter):
    """Beside a factor, the order of the halves matters."""

    by: float
    name: ClassVar[str] = "shift"

    def leaving(self, upload, agreed, bases, key):
        return Upload(upload.clients, {n: dense(t) + self.by for n, t in upload.tensors.items()}, upload.rows)

    def arrived(self, sums):
        of = {
            name: PartialSum(part.changes - self.by * sums.participants, part.weight) for name, part in sums.of.items()
        }
        return Sums(sums.participants, sums.loss, sums.nbytes, of)


def test_the_servers_halves_come_in_the_opposite_order():
    agreed = Agreement(1, torch.float64, {"net": (1,)}, {}, frozenset({"net"}), {"net": "participants"})
    chain = Chain((Scaled(4.0), Shifted(3.0)))
    upload = Upload(torch.tensor([0]), {"net": torch.tensor([[2.0]], dtype=torch.float64)})
    sent = chain.leaving(upload, agreed, {"net": torch.zeros(1, dtype=torch.float64)})
    assert sent.tensor("net").tolist() == [[11.0]]
    sums = Sums(1, None, 0, {"net": PartialSum(sent.tensor("net")[0], torch.tensor(1.0))})
    assert chain.arrived(sums).of["net"].changes.tolist() == [2.0]


@pytest.mark.parametrize("method", ["fedmf", "pfedrec", "fppdm", "fedmf-silo"])
def test_a_filter_whose_halves_cancel_changes_nothing(method, monkeypatch):
    """Wherever clients are: the sums are what the server's half gets."""
    suite = CompanyConformance() if method_named(method).domains == "several" else PeopleConformance()
    suite.method = method
    fields = method_named(method).config_class.model_fields
    suite.options = {name: value for name, value in SMALL.items() if name in fields}
    plain = suite.trained(2).state()
    monkeypatch.setattr(type(suite.terms().config), "filters", property(lambda config: Chain((Scaled(8.0),))))
    assert_close_states(suite.trained(2).state(), plain, 1e-9)
    assert_close_states(suite.trained(2, suite.in_bytes(suite.in_several_places())).state(), plain, 1e-9)
    monkeypatch.setattr(Scaled, "arrived", lambda self, sums: sums)
    with pytest.raises(AssertionError):
        assert_close_states(suite.trained(2).state(), plain, 1e-9)


@pytest.mark.parametrize(
    ("method", "options", "why"),
    [
        ("cofedrec", {}, "clients keep items"),
        ("fedmf", {"aggregation": "count"}, "say which rows they trained"),
    ],
)
def test_what_a_strategy_cannot_bear_is_refused_before_anything_starts(method, options, why):
    chosen = method_named(method)
    config = chosen.config(None, {**options, "upload_clip": 1.0, "upload_noise": 1.0})
    with pytest.raises(ConfedError, match=f"{method} cannot bear noise on its uploads: .*{why}"):
        chosen.check(Terms(config, seed=0), tiny.cut())


def test_one_without_the_other_is_refused():
    with pytest.raises(ConfedError, match="upload_clip and upload_noise belong together"):
        resolve("pfedrec", "tiny", options={"upload_clip": 1.0})
