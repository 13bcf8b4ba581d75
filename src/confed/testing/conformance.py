"""The conformance suite. Classes whose names do not begin with `Test` are for inheriting."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from confed.clients.gateway import People
from confed.data.interactions import ONLY
from confed.data.shares import AnySplit, Roster
from confed.errors import ConfedError, NobodyNewError
from confed.evaluation.domains import Examination
from confed.evaluation.judge import Judge
from confed.federations.federated import Federated
from confed.federations.gateway import Gateway
from confed.federations.local import LocalFederation
from confed.federations.remote import LostSiteError
from confed.federations.site import Site
from confed.federations.states import of_clients
from confed.messages import Download, Upload, dense
from confed.messages.agreement import FACTS
from confed.methods.base import FederatedMethod, Method, Terms, federated
from confed.methods.registry import method_named
from confed.models.silo import Rows
from confed.protocol import View
from confed.ragged import Ragged
from confed.silos.gateway import Companies
from confed.testing import tiny, tiny_domains
from confed.testing.in_bytes import InBytes, everybody, federated_in_bytes
from confed.testing.recorder import Recorder
from confed.testing.states import assert_close_states, assert_equal_states
from confed.training import Trainer

SEED = 3


class MethodConformance:
    """For anything that trains in rounds."""

    method: ClassVar[str | Method]
    """A method, or the name of one that is registered."""
    options: ClassVar[dict[str, Any]] = {}
    seeded: ClassVar[bool] = True
    """False for closed forms of the data, which no seed can change."""
    complete_from: ClassVar[int] = 1
    """The first round whose objective has all its terms."""
    single_precision: ClassVar[float] = 1e-5
    """How far two ways to the same state may differ in float32, of a tensor's largest entry. In float64 all hold."""
    threads: ClassVar[float] = 0.0
    """The same of one thread and two, in float64: libraries that solve a system, or multiply large matrices, may add up
    in another order.
    """
    several: ClassVar[bool | None] = None
    """Whether it is tried on several domains; by default, if it is for nothing else."""

    @property
    def chosen(self) -> Method:
        return method_named(self.method) if isinstance(self.method, str) else self.method

    @property
    def _of_several(self) -> bool:
        return self.chosen.domains == "several" if self.several is None else self.several

    def cut(self) -> AnySplit:
        return tiny_domains.cut() if self._of_several else tiny.cut()

    def cut_with_other_held_out_items(self) -> AnySplit:
        """The same training items as `cut` has."""
        if self._of_several:
            return tiny_domains.cut_with_other_held_out_items()
        return tiny.cut_with_other_held_out_items()

    def examination(self) -> Examination:
        protocol = tiny_domains.TINY_WARM if self._of_several else tiny.TINY_STRICT
        return Examination.of(self.cut(), protocol, SEED)

    def terms(self, options: Mapping[str, Any] | None = None, **settings: Any) -> Terms:
        config = self.chosen.config(None, {**self.options, **(options or {})})
        return Terms(config, **{"seed": SEED, "dtype": "float64", **settings})

    def trainer(
        self, cut: AnySplit | None = None, judges: Mapping[str, Judge] | None = None, **settings: Any
    ) -> Trainer:
        return self.chosen.trainer(self.terms(**settings), cut or self.cut(), judges or {})

    def trained(self, rounds: int = 2, trainer: Trainer | None = None, **settings: Any) -> Trainer:
        trainer = trainer or self.trainer(**settings)
        for number in range(1, rounds + 1):
            trainer.round(number)
        return trainer

    def metrics(self, trainer: Trainer, number: int) -> dict[View, Any]:
        """Train round `number` and evaluate it under every view."""
        grading = self.examination().grading
        tallies = trainer.round(number, trainer.views).tallies
        return {view: grading.result(of).metrics("test") for view, of in tallies.items()}

    def test_same_seed_same_result(self) -> None:
        assert_equal_states(self.trained().state(), self.trained().state(), tolerance=0)

    def test_another_seed_another_result(self) -> None:
        first, other = self.trained().state(), self.trained(seed=SEED + 1).state()
        assert self.seeded == any(not torch.equal(first[name], other[name]) for name in first)

    def test_state_survives_a_file_and_resumes_exactly(self, tmp_path: Path) -> None:
        judges = self.examination().judges
        trainer = self.trained(rounds=1, judges=judges)
        save_file({name: t.clone().contiguous() for name, t in trainer.state().items()}, tmp_path / "state")
        fresh = self.trainer(judges=judges)
        fresh.load(load_file(tmp_path / "state"))
        assert self.metrics(fresh, 2) == self.metrics(trainer, 2)
        assert_equal_states(fresh.state(), trainer.state(), tolerance=0)

    def test_held_out_items_are_unreachable(self) -> None:
        """Data with other held-out items and the same training items: training cannot tell the difference."""
        cut, other = self.cut(), self.cut_with_other_held_out_items()
        for domain, part in cut.parts.items():
            assert part.training.positives.values.tolist() == other.parts[domain].training.positives.values.tolist()
            assert part.tested.tolist() != other.parts[domain].tested.tolist()
        assert_equal_states(self.trained(cut=cut).state(), self.trained(cut=other).state(), tolerance=0)

    def test_serving_scores_as_the_round_was_scored(self) -> None:
        self.check_serving()

    def test_a_state_that_is_loaded_is_the_state(self) -> None:
        """Whatever was under way before."""
        trainer = self.trained(1)
        state = {name: tensor.clone() for name, tensor in trainer.state().items()}
        trainer.round(2)
        trainer.load(state)
        assert_equal_states(trainer.state(), state, tolerance=0)

    def check_serving(self, **settings: Any) -> None:
        """Recommendations come from the state that was evaluated, also where it has to be rebuilt."""
        cut = self.cut()
        recorders = Recorder.of(cut)
        trainer = self.trained(1, judges=recorders, **settings)
        trainer.round(2, [trainer.view])
        state = trainer.serving_state()
        trainer.round(3)
        for domain, recorder in recorders.items():
            clients = torch.tensor([place for place in (20, 3, 11, 0, 23, 7) if place < recorder.users])
            served = self.chosen.scorer(self.terms(**settings), cut, state, 2, domain)(clients)
            expected = recorder.scores[clients].to(served.dtype)
            torch.testing.assert_close(served, expected, rtol=1e-9, atol=1e-9)

    def test_every_user_of_every_domain_is_scored_under_every_view(self) -> None:
        recorders = Recorder.of(self.cut())
        trainer = self.trainer(judges=recorders)
        trainer.round(1, trainer.views)
        for recorder in recorders.values():
            assert len(recorder.cards) == len(trainer.views)
            assert all(bool(torch.isfinite(card.scores).all()) for card in recorder.cards)

    def test_learning_lowers_the_loss(self) -> None:
        trainer = self.trainer()
        losses = [trainer.round(number).loss for number in range(1, 11)][self.complete_from - 1 :]
        if losses[0] is not None and losses[-1] is not None:
            assert losses[-1] < losses[0]

    def test_threads_change_nothing(self) -> None:
        threads = torch.get_num_threads()
        try:
            torch.set_num_threads(1)
            one_after_another = self.trained().state()
            torch.set_num_threads(2)
            assert_close_states(self.trained().state(), one_after_another, self.threads)
        finally:
            torch.set_num_threads(threads)


class FederatedConformance(MethodConformance):
    """For methods with clients and a server."""

    exchanges: ClassVar[int] = 1
    """How many a round takes at most."""
    apart: ClassVar[float] = 1e-10
    """How far clients held apart may be from all in one place, in float64, of a tensor's largest entry."""

    @property
    def federated(self) -> FederatedMethod:
        return federated(self.chosen)

    def federation(self, **settings: Any) -> Federated:
        trainer = self.trainer(**settings)
        assert isinstance(trainer, Federated)
        return trainer

    def site(self, trainer: Federated) -> Site:
        assert isinstance(trainer.federation, LocalFederation)
        return trainer.federation.site

    def gateway(self, trainer: Federated) -> Gateway:
        return self.site(trainer).gateway

    def in_bytes(self, held: list[Tensor] | None = None, cut: AnySplit | None = None, **settings: Any) -> Federated:
        """The same, with nothing but bytes between server and clients."""
        data = cut or self.cut()
        held = held or everybody(data)
        return federated_in_bytes(self.federated, self.terms(**settings), data, self.examination(), held)

    def sent(self, number: int = 1, **settings: Any) -> Iterator[tuple[Upload, Gateway]]:
        """All messages to the server in a round, after one before it, as they leave."""
        trainer = self.trained(number - 1, **settings)
        assert isinstance(trainer, Federated)
        gateway, download = self.gateway(trainer), trainer.server.download()
        trainer.federation.state()  # what was pushed arrives
        clients = torch.arange(len(gateway.ids))
        site = self.site(trainer)
        received = download.of(clients)
        for upload in gateway.train(number, received, clients, {}):
            sent = site.leaving(upload, number, gateway.agreement.bases(received))
            for place in range(len(sent)):
                yield sent.of(torch.tensor([place])), gateway

    @pytest.mark.parametrize("number", [1, 2])
    def test_nothing_leaves_a_client_but_what_was_agreed(self, number: int) -> None:
        """Names, shapes and types: the server reads a message against the schema, and finds all of it there."""
        found = list(self.sent(number))
        assert sorted(int(upload.clients) for upload, _ in found) == sorted(Roster.of(self.cut()).ids.tolist())
        for upload, gateway in found:
            agreed = gateway.agreement
            again = Upload.from_bytes(upload.to_bytes(), agreed.upload(1))
            assert set(again.tensors) == agreed.uploads
            assert agreed.uploads <= {*agreed.shapes, *FACTS}

    def test_bytes_are_those_of_every_clients_message(self) -> None:
        trainer = self.trained(1, self.federation())
        assert isinstance(trainer, Federated)
        clients = trainer.server.participants(2)
        ids = set(trainer.server.ids[clients].tolist())
        sent = sum(upload.bytes_per_client for upload, _ in self.sent(2) if int(upload.clients) in ids)
        download = trainer.server.download()
        everyone = torch.split(torch.arange(len(trainer.server.ids)), 1)
        received = sum(_bytes(download.of(place)) for place in torch.split(clients, 1))
        done = trainer.round(2)
        push = trainer.server.strategy.push()
        pushed = (
            sum(len(push.of(place).to_bytes()) for place in everyone if int(push.table_of[place]) >= 0) if push else 0
        )
        assert (done.upload_bytes, done.download_bytes) == (sent, received + pushed)

    def test_every_message_goes_through_bytes_and_changes_nothing(self) -> None:
        direct, carried = self.federation(judges=self.examination().judges), self.in_bytes()
        for trainer in (direct, carried):
            trainer.round(1)
        one, other = (trainer.round(2, trainer.views) for trainer in (direct, carried))
        assert_close_states(direct.state(), carried.state(), 1e-10)
        assert one.notes == other.notes
        grading = self.examination().grading
        for view, tallies in one.tallies.items():
            assert grading.result(tallies).metrics("test") == grading.result(other.tallies[view]).metrics("test")

    def in_several_places(self) -> list[Tensor]:
        """One client alone, some, and the rest, in any order."""
        order = torch.randperm(len(Roster.of(self.cut()).ids), generator=torch.Generator().manual_seed(0))
        return [part for part in (order[:1], order[1:10], order[10:]) if len(part)]

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    def test_clients_held_apart_equal_all_in_one_place(self, dtype: str) -> None:
        together, apart = self.federation(dtype=dtype), self.in_bytes(self.in_several_places(), dtype=dtype)
        for number in (1, 2, 3):
            assert _choices(together.round(number).notes) == _choices(apart.round(number).notes)
        tolerance = self.apart if dtype == "float64" else self.single_precision
        assert_close_states(together.state(), apart.state(), tolerance)
        assert_close_states(together.serving_state(), apart.serving_state(), tolerance)

    def test_a_round_takes_few_exchanges(self) -> None:
        apart = self.in_bytes(self.in_several_places())
        for number in (1, 2):
            before = apart.federation.exchanges
            apart.round(number)
            assert apart.federation.exchanges - before <= self.exchanges
        needs = apart.server.agreement.needs
        assert (self.exchanges == 1) == (needs == "sum")

    def test_a_round_that_was_broken_off_is_repeated_as_if_it_had_not_been(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A site is lost after the first turn, if there is another: everything returns to what it was."""
        undisturbed, trainer = self.trained(2), self.trained(1)
        assert isinstance(trainer, Federated)
        state = {name: value.clone() for name, value in trainer.state().items()}
        train, calls = trainer.federation.train, iter([True, False])

        def lost(*told: Any, **more: Any) -> Any:
            if next(calls, False):
                return train(*told, **more)
            raise LostSiteError

        with monkeypatch.context() as patch:
            patch.setattr(trainer.federation, "train", lost)
            with suppress(LostSiteError):
                trainer.round(2)
        trainer.load(state)
        trainer.round(2)
        assert_equal_states(trainer.state(), undisturbed.state(), tolerance=1e-12)

    def test_who_needs_sums_gets_sums(self) -> None:
        """Nothing about a single client crosses the line: not its id, nor an upload."""
        apart = self.in_bytes(self.in_several_places())
        apart.round(1)
        assert isinstance(apart.federation, InBytes)
        single = [frame for frame in apart.federation.frames if b"upload 1" in frame or b"each 1" in frame]
        assert not single or apart.server.agreement.needs == "individual"


def _bytes(download: Download) -> int:
    return len(download.to_bytes()) if download.tables or download.side else 0


def _choices(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What may not differ by rounding."""
    return {name: value for name, value in notes.items() if isinstance(value, int | str | list)}


class PeopleConformance(FederatedConformance):
    """For methods whose clients are people."""

    served: ClassVar[View] = "global"
    """The view beside `local`."""
    serves_newcomers: ClassVar[bool] = True
    """Whether people can be scored who were not in the data."""

    def people(self, trainer: Federated) -> People:
        gateway = self.gateway(trainer)
        assert isinstance(gateway, People)
        return gateway

    @pytest.mark.parametrize("local", [True, False])
    @pytest.mark.parametrize("fraction", [1.0, 0.5])
    def test_serving_under_every_view_and_with_absentees(self, local: bool, fraction: float) -> None:
        if local and self.federation().server.strategy.moves:
            with pytest.raises(ConfedError, match="can be scored under"):
                self.check_serving(view="local")
            return
        self.check_serving(options={"fraction": fraction}, view="local" if local else self.served)

    @pytest.mark.parametrize("chunk", [1, 5, 24])
    def test_any_chunk_size_gives_the_same_result(self, chunk: int) -> None:
        reference, chunked = self.trained(), self.trained(chunk=chunk)
        assert_equal_states(reference.state(), chunked.state(), tolerance=1e-9)

    @pytest.mark.parametrize("chunk", [1, 5])
    def test_chunk_size_in_single_precision(self, chunk: int) -> None:
        reference, chunked = self.trained(dtype="float32"), self.trained(dtype="float32", chunk=chunk)
        assert_close_states(reference.state(), chunked.state(), self.single_precision)

    @pytest.mark.parametrize("fraction", [1.0, 0.5])
    def test_ids_are_no_places(self, fraction: float) -> None:
        """Clients with any ids, in no order, held apart: as all in one place."""
        order = np.random.default_rng(0).permutation(tiny.USERS)
        cut = tiny.with_ids(2**40 - 7 * order)
        options = {"fraction": fraction}
        together = self.federation(cut=cut, options=options)
        apart = self.in_bytes(self.in_several_places(), cut=cut, options=options)
        for number in (1, 2):
            assert together.round(number).notes == apart.round(number).notes
        assert_close_states(together.state(), apart.state(), 1e-10)

    def test_newcomers_are_scored_each_by_itself_and_change_nothing(self) -> None:
        trainer, data = self.trained(3), self.cut().parts[ONLY].training
        state, people = trainer.serving_state(), data.positives.take(np.array([3, 1]))

        def scored(histories: Ragged) -> Tensor:
            return self.chosen.newcomers(self.terms(), self.cut(), state, 3, histories)

        if not self.serves_newcomers:
            with pytest.raises(NobodyNewError, match="serves only those it trained on"):
                scored(people)
            return
        both = scored(people)
        assert both.shape == (2, data.items) and bool(torch.isfinite(both).all())
        assert not torch.allclose(both[0], both[1]), "people with other items are scored otherwise"
        for place in (0, 1):
            torch.testing.assert_close(scored(people.take(np.array([place]))), both[place : place + 1])
        assert_equal_states(trainer.serving_state(), state, tolerance=0)

    def test_private_parameters_are_not_sent(self) -> None:
        trainer = self.federation()
        people = self.people(trainer)
        private = {spec.name for spec in people.backbone.named(scope="private")}
        assert not private & people.agreement.uploads
        cohort = people.train_chunk(1, trainer.server.download(), np.arange(4))
        for name in private:
            with pytest.raises(ValueError, match="private"):
                cohort.upload([name])

    def test_partial_participation(self) -> None:
        """Those who stay away keep their private state; everybody is scored."""
        recorders = Recorder.of(self.cut())
        trainer = self.federation(judges=recorders, options={"fraction": 0.25})
        people, everybody = self.people(trainer), torch.arange(tiny.USERS)
        before = of_clients(people.state(), everybody)
        taking_part = trainer.server.participants(1)
        assert trainer.round(1, [trainer.view]).participants == len(taking_part) == 6
        absent = everybody[~torch.isin(everybody, taking_part)]
        after = of_clients(people.state(), absent)
        for name, value in of_clients(before, absent).items():
            assert torch.equal(after[name], value)
        assert all(bool(torch.isfinite(recorder.scores).all()) for recorder in recorders.values())

    def test_noise_on_uploads_or_its_refusal(self) -> None:
        """What a client sends is clipped as one, its loss stays, and where clients are changes nothing; or the method
        says why it cannot bear noise, before anything starts.
        """
        noisy = {"upload_clip": 0.05, "upload_noise": 1e-6}
        agreed = self.gateway(self.federation()).agreement
        alone = agreed.uploads - agreed.plan.keys() - {"loss"}
        if agreed.plan.keys() & agreed.kept.keys() or alone:
            with pytest.raises(ConfedError, match="cannot bear noise on its uploads"):
                self.chosen.check(self.terms(noisy), self.cut())
            return
        bases = agreed.bases(self.federation().server.download())
        for upload, _ in self.sent(1, options=noisy):
            assert set(upload.tensors) == agreed.uploads - {"loss"}
            changes = [dense(upload.tensors[name])[0] - bases[name] for name in agreed.plan]
            assert sum(float(change.square().sum()) for change in changes) ** 0.5 <= 0.05 + 1e-3
        together, apart = self.federation(options=noisy), self.in_bytes(self.in_several_places(), options=noisy)
        for trainer in (together, apart):
            self.trained(2, trainer)
        assert_close_states(together.state(), apart.state(), 1e-10)
        if agreed.plan:
            assert together.round(3).notes["noise"]["everybody"]["clip"] == 0.05

    def check_that_only_the_loss_travels(self) -> None:
        """For controls whose clients never meet."""
        trainer = self.federation()
        done = trainer.round(1)
        assert trainer.server.agreement.uploads == {"loss"}
        assert done.download_bytes == 0
        assert done.upload_bytes < done.participants * 400


class CompanyConformance(FederatedConformance):
    """For methods whose clients are companies."""

    uploads: ClassVar[tuple[str, ...]]
    """The rows that travel, by name."""
    apart: ClassVar[float] = 0.0
    single_precision: ClassVar[float] = 0.0

    def companies(self, trainer: Federated) -> Companies:
        gateway = self.gateway(trainer)
        assert isinstance(gateway, Companies)
        return gateway

    def test_rows_of_shared_users_leave_a_company_and_no_others(self) -> None:
        for upload, gateway in self.sent(2):
            assert isinstance(gateway, Companies)
            silo = list(gateway.silos.values())[int(upload.clients)]
            assert set(upload.tensors) == {*self.uploads, "loss"}
            assert upload.rows is not None
            assert torch.equal(upload.rows, silo.shared.people[silo.shared.known])
            assert 0 < len(upload.rows) < silo.data.users, "the tiny data has users of one domain only"
            shared = silo.share()
            for name in self.uploads:
                assert torch.equal(upload.tensor(name)[0], shared[name][silo.shared.known])

    def test_the_server_knows_nothing_but_means(self) -> None:
        """And each is the mean over the companies that know the person, counted by brute force."""
        trainer = self.federation()
        uploads = [upload for upload, _ in self.sent(1)]
        trainer.round(1)
        state = trainer.server.strategy.state()
        assert set(state) == set(self.uploads)
        for name, table in state.items():
            for person in range(len(table)):
                rows = [u.tensor(name)[0][u.rows == person] for u in uploads]
                if sum(map(len, rows)):
                    torch.testing.assert_close(table[person], torch.cat(rows).mean(dim=0))

    def test_companies_learn_from_each_other(self) -> None:
        """What one company has changes another's model from the second round on, and only through the server."""
        first, other = self.federation(), self.federation()
        name, neighbour = list(self.companies(first).silos)[:2]
        for tensor in self.companies(other).silos[neighbour].state().values():
            tensor.mul_(1.5)
        for trainer in (first, other):
            trainer.round(1)
        one, two = (self.companies(trainer).silos[name] for trainer in (first, other))
        assert_equal_states(one.state(), two.state(), tolerance=0)
        for trainer in (first, other):
            trainer.round(2)
        assert any(not torch.equal(one.state()[key], value) for key, value in two.state().items())

    @pytest.mark.parametrize("view", ["local", "global"])
    def test_serving_under_both_views(self, view: View) -> None:
        self.check_serving(view=view)

    def test_noise_on_uploads_is_reported_and_rows_are_clipped(self) -> None:
        noisy = {"upload_clip": 0.05, "upload_noise": 1e-6}
        for upload, _ in self.sent(1, options=noisy):
            assert set(upload.tensors) == set(self.uploads), "the loss would say something of what noise hides"
            length = torch.cat([upload.tensor(name)[0] for name in self.uploads], dim=1).norm(dim=1)
            assert (length <= 0.05 + 1e-3).all()
        done = self.federation(options=noisy).round(1)
        for note in done.notes["noise"].values():
            assert note["clip"] == 0.05
            assert note["noise_deviation"] == pytest.approx(5e-8)

    def noise(self) -> list[Tensor]:
        """On the first part of all that is sent in two rounds: what differs from the clipped rows.

        Of a second part, deviations, what noise made negative is cut off.
        """
        found = []
        for number in (1, 2):
            for upload, gateway in self.sent(number, options={"upload_clip": 0.05, "upload_noise": 2.0}):
                assert isinstance(gateway, Companies)
                silo = list(gateway.silos.values())[int(upload.clients)]
                rows: Rows = {name: tensor[silo.shared.known] for name, tensor in silo.share().items()}
                shorter = (0.05 / torch.cat(list(rows.values()), dim=1).norm(dim=1, keepdim=True)).clamp_max(1)
                first = self.uploads[0]
                found.append(upload.tensor(first)[0] - shorter * rows[first])
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
        recorders = Recorder.of(self.cut())
        trainer = self.federation(judges=recorders)
        trainer.round(1, ["local", "global"])
        download = trainer.server.download().of(torch.arange(len(recorders)))
        companies = self.companies(trainer)
        for name, silo in companies.silos.items():
            local, seen = (card.scores for card in recorders[name].cards)
            expected = silo.scorer(companies.about(name, download))(torch.arange(silo.data.users))
            torch.testing.assert_close(seen, expected)
            others = [other.shared for neighbour, other in companies.silos.items() if neighbour != name]
            told = torch.cat([shared.people[shared.known] for shared in others])
            elsewhere = silo.shared.users[torch.isin(silo.shared.people, told)]
            assert len(elsewhere)
            assert not torch.isclose(seen[elsewhere], local[elsewhere]).all(dim=1).any()

    def test_only_views_that_there_are(self) -> None:
        assert set(self.trainer().views) == {"local", "global"}
        with pytest.raises(ConfedError, match="can be scored under"):
            self.chosen.check(self.terms(view="pushed"), self.cut())
