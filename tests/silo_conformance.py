"""What every method on several domains must show, inherited by its test class; on tiny data, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from confed.data.domain_split import DomainSplit
from confed.engines.base import RoundReport
from confed.engines.domains import DomainTrainer, SiloEngine
from confed.errors import ConfedError
from confed.evaluation.domains import DomainEvaluator
from confed.messages import PeopleRows
from confed.runs.runner import make_domain_trainer
from confed.runs.settings import resolve
from tests import tiny_domains
from tests.conformance import SEED, Recorder, assert_equal_states
from tests.spread import CompaniesApart
from tests.wire import carry_bytes


def _side_by_side(rows: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(rows.values()), dim=1)


class Recorders:
    """Scorecards of all domains that keep the scores."""

    def __init__(self, cut: DomainSplit) -> None:
        self.of = {name: Recorder(part.users, part.items) for name, part in cut.parts.items()}

    def __getitem__(self, name: str) -> Recorder:
        return self.of[name]


class DomainConformance:
    """For anything that trains on several domains in rounds."""

    method: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    seeded: ClassVar[bool] = True

    def cut(self) -> DomainSplit:
        return tiny_domains.cut()

    def cut_with_other_held_out_items(self) -> DomainSplit:
        """The same training items as `cut` has."""
        return tiny_domains.cut_with_other_held_out_items()

    def trainer(self, cut: DomainSplit | None = None, **settings: Any) -> DomainTrainer:
        chosen = {"dtype": "float64", "seed": SEED, "options": self.options, "protocol": "warm", **settings}
        trainer = make_domain_trainer(resolve(self.method, "tiny", **chosen), cut or self.cut())
        assert isinstance(trainer, DomainTrainer)
        return trainer

    def trained(self, rounds: int = 2, trainer: DomainTrainer | None = None, **settings: Any) -> DomainTrainer:
        trainer = trainer or self.trainer(**settings)
        for number in range(1, rounds + 1):
            trainer.round(number, {})
        return trainer

    def metrics(self, trainer: DomainTrainer, number: int) -> dict[str, Any]:
        evaluator = DomainEvaluator(self.cut(), tiny_domains.TINY_WARM, SEED)
        cards = {view: evaluator.scorecard() for view in trainer.views}
        trainer.round(number, cards)
        return {view: card.result().metrics("test") for view, card in cards.items()}

    def test_same_seed_same_result(self) -> None:
        assert_equal_states(self.trained().state(), self.trained().state(), tolerance=0)

    def test_another_seed_another_result(self) -> None:
        first, other = self.trained().state(), self.trained(seed=SEED + 1).state()
        assert self.seeded == any(not torch.equal(first[name], other[name]) for name in first)

    def test_domains_side_by_side_or_one_after_another(self) -> None:
        one_after_another = self.trained().state()
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert_equal_states(self.trained().state(), one_after_another, tolerance=0)
        finally:
            torch.set_num_threads(threads)

    def test_state_survives_a_file_and_resumes_exactly(self, tmp_path: Any) -> None:
        trainer = self.trained(rounds=1)
        save_file({name: t.clone().contiguous() for name, t in trainer.state().items()}, tmp_path / "state")
        fresh = self.trainer()
        fresh.load(load_file(tmp_path / "state"))
        assert self.metrics(fresh, 2) == self.metrics(trainer, 2)
        assert_equal_states(fresh.state(), trainer.state(), tolerance=0)

    def test_held_out_items_are_unreachable(self) -> None:
        cut, other = self.cut(), self.cut_with_other_held_out_items()
        for name, part in cut.parts.items():
            assert part.training.positives.values.tolist() == other.parts[name].training.positives.values.tolist()
            assert part.tested.tolist() != other.parts[name].tested.tolist()
        assert_equal_states(self.trained(cut=cut).state(), self.trained(cut=other).state(), tolerance=0)

    def test_serving_scores_as_the_round_was_scored(self) -> None:
        self.check_serving({})

    def check_serving(self, options: dict[str, Any]) -> None:
        trainer = self.trainer(options={**self.options, **options})
        trainer.round(1, {})
        recorders = Recorders(self.cut())
        trainer.round(2, {trainer.view: recorders})  # type: ignore[dict-item]
        state = {name: tensor.clone() for name, tensor in trainer.serving_state().items()}
        trainer.round(3, {})
        for name in self.cut().parts:
            served = self.trainer(options={**self.options, **options}).serve(state, 2, np.array([3, 0]), domain=name)
            expected = recorders[name].scores[[3, 0]]
            torch.testing.assert_close(served.double(), expected, rtol=1e-9, atol=1e-9)

    def test_every_user_of_every_domain_is_scored(self) -> None:
        trainer = self.trainer()
        recorders = {view: Recorders(self.cut()) for view in trainer.views}
        trainer.round(1, recorders)  # type: ignore[arg-type]
        for cards in recorders.values():
            assert all(bool(torch.isfinite(card.scores).all()) for card in cards.of.values())

    def test_learning_lowers_the_loss(self) -> None:
        trainer = self.trainer()
        losses = [trainer.round(number, {}).loss for number in range(1, 7)]
        if losses[0] is not None:
            assert losses[-1] < losses[0]


class SiloConformance(DomainConformance):
    """For companies with a server between them."""

    uploads: ClassVar[tuple[str, ...]]
    """What travels, by name."""

    def engine(self, **settings: Any) -> SiloEngine:
        engine = self.trainer(**settings)
        assert isinstance(engine, SiloEngine)
        return engine

    def sent(self, engine: SiloEngine, number: int) -> list[PeopleRows]:
        """All that reaches the server in a round."""
        return self.sent_and_reported(engine, number)[0]

    def sent_and_reported(self, engine: SiloEngine, number: int) -> tuple[list[PeopleRows], RoundReport]:
        seen: list[PeopleRows] = []
        aggregate = engine.server.aggregate

        def spy(uploads: Any) -> None:
            seen.extend(uploads)
            aggregate(uploads)

        engine.server.aggregate = spy  # type: ignore[method-assign]
        report = engine.round(number, {})
        engine.server.aggregate = aggregate  # type: ignore[method-assign]
        return seen, report

    def test_nothing_but_the_declared_rows_of_shared_users_leaves_a_company(self) -> None:
        engine = self.engine()
        for number in (1, 2):
            for silo, upload in zip(engine.silos.values(), self.sent(engine, number), strict=True):
                assert tuple(upload.tensors) == self.uploads
                assert upload.loss is not None and upload.loss.shape == ()
                assert torch.equal(upload.people, silo.shared.people[silo.shared.known])
                assert 0 < len(upload.people) < silo.data.users, "the tiny data has users of one domain only"
                shared = silo.share()
                for name, rows in upload.tensors.items():
                    assert torch.equal(rows, shared[name][silo.shared.known])

    def test_the_server_knows_nothing_but_means(self) -> None:
        """And each is the mean over the companies that know the person, counted by brute force."""
        engine = self.engine()
        uploads = self.sent(engine, 1)
        assert set(engine.server.state()) == set(self.uploads)
        for name, table in engine.server.state().items():
            for person in range(engine.server.people):
                rows = [u.tensors[name][u.people == person] for u in uploads if (u.people == person).any()]
                if rows:
                    torch.testing.assert_close(table[person], torch.cat(rows).mean(dim=0))

    def test_bytes_are_those_of_the_rows(self) -> None:
        engine = self.engine_after_a_round(self.engine())
        received = [engine.server.download(silo.shared.people) for silo in engine.silos.values()]
        sent, report = self.sent_and_reported(engine, 2)
        assert report.upload_bytes == sum(len(rows.to_bytes()) for rows in sent)
        assert report.download_bytes == sum(len(rows.to_bytes()) for rows in received if rows)
        assert sum(engine.upload_parts().values()) == report.upload_bytes

    @staticmethod
    def engine_after_a_round(engine: SiloEngine) -> SiloEngine:
        engine.round(1, {})
        return engine

    def test_rows_go_through_bytes_and_change_nothing(self) -> None:
        direct, carried = self.trained(), self.trained(trainer=carry_bytes(self.trainer()))
        assert_equal_states(direct.state(), carried.state(), tolerance=0)

    def test_companies_held_apart_equal_all_in_one_place(self) -> None:
        """Bit for bit."""
        together, apart = self.trained(), CompaniesApart(self.engine)
        for number in (1, 2):
            apart.round(number)
        assert_equal_states(together.state(), apart.state(), tolerance=0)

    def test_companies_learn_from_each_other(self) -> None:
        """What one company has changes another's model from the second round on, and only through the server."""
        first, other = self.engine(), self.engine()
        name, neighbour = list(first.silos)[:2]
        changed = other.silos[neighbour]
        for tensor in changed.state().values():
            tensor.mul_(1.5)
        for engine in (first, other):
            engine.round(1, {})
        one, two = first.silos[name], other.silos[name]
        assert_equal_states(one.state(), two.state(), tolerance=0)
        for engine in (first, other):
            engine.round(2, {})
        assert any(not torch.equal(one.state()[key], value) for key, value in two.state().items())

    @pytest.mark.parametrize("view", ["local", "global"])
    def test_serving_under_both_views(self, view: str) -> None:
        self.check_serving({"view": view})

    def test_noise_on_uploads_is_reported_and_rows_are_clipped(self) -> None:
        noisy = self.engine(options={**self.options, "upload_clip": 0.05, "upload_noise": 1e-9})
        upload = self.sent(noisy, 1)[0]
        assert tuple(upload.tensors) == self.uploads
        length = _side_by_side(upload.tensors).norm(dim=1)
        assert (length <= 0.05 + 1e-3).all()
        assert upload.loss is None, "it would say something of what noise hides"
        report = noisy.round(2, {})
        for note in report.server["noise"].values():
            assert note["clip"] == 0.05
            assert note["noise_deviation"] == pytest.approx(5e-11)

    def noise(self) -> list[torch.Tensor]:
        """On the first part of all that is sent in two rounds: what differs from the clipped rows.

        Of a second part, deviations, what noise made negative is cut off.
        """
        engine = self.engine(options={**self.options, "upload_clip": 0.05, "upload_noise": 2.0})
        found = []
        for number in (1, 2):
            for silo, upload in zip(engine.silos.values(), self.sent(engine, number), strict=True):
                rows = {name: tensor[silo.shared.known] for name, tensor in silo.share().items()}
                shorter = (0.05 / _side_by_side(rows).norm(dim=1, keepdim=True)).clamp_max(1)
                first = self.uploads[0]
                found.append(upload.tensors[first] - shorter * rows[first])
        return found

    def test_noise_is_as_large_as_said_and_new_for_every_round_and_company(self) -> None:
        noise = self.noise()
        for one in noise:
            assert float(one.std()) == pytest.approx(2.0 * 0.05, rel=0.2)
            assert abs(float(one.mean())) < 0.02
        for first, second in itertools.combinations(noise, 2):
            few = min(len(first), len(second))
            together = torch.stack([first[:few].flatten(), second[:few].flatten()])
            assert abs(float(torch.corrcoef(together)[0, 1])) < 0.3
        for first, again in zip(noise, self.noise(), strict=True):
            assert torch.equal(first, again)

    def test_the_global_view_has_the_servers_rows_in_place_of_the_own(self) -> None:
        engine = self.engine()
        views = {view: Recorders(self.cut()) for view in ("local", "global")}
        engine.round(1, views)  # type: ignore[arg-type]
        for name, silo in engine.silos.items():
            local, seen = views["local"][name].scores, views["global"][name].scores
            download = engine.server.download(silo.shared.people)
            assert download is not None
            torch.testing.assert_close(seen, silo.scorer(download.tensors)(torch.arange(silo.data.users)))
            others = [other.shared for neighbour, other in engine.silos.items() if neighbour != name]
            told = torch.cat([shared.people[shared.known] for shared in others])
            elsewhere = silo.shared.users[torch.isin(silo.shared.people, told)]
            assert len(elsewhere)
            assert not torch.isclose(seen[elsewhere], local[elsewhere]).all(dim=1).any()

    def test_only_views_that_there_are(self) -> None:
        with pytest.raises(ConfedError, match="can be scored under"):
            self.trainer(options={**self.options, "view": "pushed"})
