"""What every method must show, inherited by its test class; on tiny data, in float64.

A method's test is a subclass of `FederatedConformance` (or of `TrainerConformance` for methods without clients) that
sets a few attributes. See tests/methods/test_pfedrec.py for the shortest one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from benchmarks import plain
from safetensors.torch import load_file, save_file

from confed.clients.sampling import draw_rows
from confed.data.split import Split
from confed.engines.base import Trainer
from confed.engines.local import LocalEngine
from confed.evaluation.evaluator import Evaluator, Result
from confed.messages import dense
from confed.methods.base import FederatedMethod
from confed.methods.registry import method_named
from confed.random import Stream
from confed.runs.runner import make_trainer
from confed.runs.settings import resolve
from tests import tiny
from tests.spread import Spread
from tests.wire import carry_bytes, tally_through_bytes

SEED = 3


class TrainerConformance:
    """For anything that trains in rounds."""

    method: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    seeded: ClassVar[bool] = True
    """False for closed forms of the data, which no seed can change."""
    complete_from: ClassVar[int] = 1
    """The first round whose objective has all its terms."""
    single_precision: ClassVar[float] = 1e-5
    """How far two ways to the same state may differ in float32, of a tensor's largest entry. In float64 all hold."""

    def trainer(self, cut: Split | None = None, **settings: Any) -> Trainer:
        chosen = {"dtype": "float64", "seed": SEED, "options": self.options, **settings}
        return make_trainer(resolve(self.method, "tiny", **chosen), cut or tiny.cut())

    def trained(self, rounds: int = 2, trainer: Trainer | None = None, **settings: Any) -> Trainer:
        trainer = trainer or self.trainer(**settings)
        for number in range(1, rounds + 1):
            trainer.round(number, {})
        return trainer

    def metrics(self, trainer: Trainer, number: int, cut: Split | None = None) -> dict[str, dict[str, float]]:
        """Train round `number` and evaluate it under every view."""
        evaluator = Evaluator(cut or tiny.cut(), tiny.TINY_STRICT, SEED)
        cards = {view: evaluator.scorecard() for view in trainer.views}
        trainer.round(number, cards)
        return {view: card.result().metrics("test") for view, card in cards.items()}

    def test_same_seed_same_result(self) -> None:
        first, again = self.trained(), self.trained()
        assert_equal_states(first.state(), again.state(), tolerance=0)

    def test_another_seed_another_result(self) -> None:
        first, other = self.trained().state(), self.trained(seed=SEED + 1).state()
        assert self.seeded == any(not torch.equal(first[name], other[name]) for name in first)

    def test_state_survives_a_file_and_resumes_exactly(self, tmp_path: Any) -> None:
        trainer = self.trained(rounds=1)
        save_file({name: t.clone().contiguous() for name, t in trainer.state().items()}, tmp_path / "state")
        fresh = self.trainer()
        fresh.load(load_file(tmp_path / "state"))
        assert self.metrics(fresh, 2) == self.metrics(trainer, 2)
        assert_equal_states(fresh.state(), trainer.state(), tolerance=0)

    def test_held_out_items_are_unreachable(self) -> None:
        """Data with other held-out items and the same training items: training cannot tell the difference."""
        cut, other = tiny.cut(), tiny.cut_with_other_held_out_items()
        assert (cut.test != other.test).any()
        assert_equal_states(self.trained(cut=cut).state(), self.trained(cut=other).state(), tolerance=0)

    def test_serving_scores_as_the_round_was_scored(self) -> None:
        self.check_serving(self.options)

    def check_serving(self, options: dict[str, Any]) -> None:
        """Recommendations come from the state that was evaluated, also where it has to be rebuilt."""
        trainer = self.trained(1, self.trainer(options=options))
        recorder = Recorder(tiny.USERS, tiny.ITEMS)
        trainer.round(2, {trainer.view: recorder})
        state = trainer.serving_state()
        trainer.round(3, {})
        clients = np.array([20, 3, 11, 0, 23, 7])
        served = self.trainer(options=options).serve(state, 2, clients)
        torch.testing.assert_close(served, recorder.scores[clients].to(served.dtype), rtol=1e-9, atol=1e-9)

    def test_learning_lowers_the_loss(self) -> None:
        trainer = self.trainer()
        losses = [trainer.round(number, {}).loss for number in range(1, 11)][self.complete_from - 1 :]
        if losses[0] is not None:
            assert losses[-1] < losses[0]


class Recorder:
    """A scorecard that keeps the scores."""

    def __init__(self, users: int, items: int) -> None:
        self.clients = torch.arange(users)
        self.scores = torch.full((users, items), torch.nan, dtype=torch.float64)

    def add(self, clients: torch.Tensor, logits: torch.Tensor) -> None:
        self.scores[clients] = logits.double()


@dataclass(frozen=True)
class Oracle:
    """How a method is written plainly: its module, its optimisers, and the module's name of each parameter."""

    federation: plain.PlainFederation
    names: dict[str, str]
    merge: dict[str, str]
    """The server's rule for every shared parameter: a function of benchmarks/plain.py."""
    begin: Callable[[plain.State, int], plain.State] = lambda state, samples: state
    """What a client with so many rows makes of its parameters before its first batch."""


class FederatedConformance(TrainerConformance):
    """For cross-device methods."""

    def oracle(self, config: Any, items: int) -> Oracle:
        raise NotImplementedError

    def engine(self, **settings: Any) -> LocalEngine:
        engine = self.trainer(**settings)
        assert isinstance(engine, LocalEngine)
        return engine

    served: ClassVar[str] = "global"
    """The view beside `local`."""

    @pytest.mark.parametrize("local", [True, False])
    @pytest.mark.parametrize("fraction", [1.0, 0.5])
    def test_serving_under_every_view_and_with_absentees(self, local: bool, fraction: float) -> None:
        self.check_serving({**self.options, "view": "local" if local else self.served, "fraction": fraction})

    @pytest.mark.parametrize("chunk", [1, 5, 24])
    def test_any_chunk_size_gives_the_same_result(self, chunk: int) -> None:
        reference, chunked = self.trained(), self.trained(chunk=chunk)
        assert_equal_states(reference.state(), chunked.state(), tolerance=1e-9)

    @pytest.mark.parametrize("chunk", [1, 5])
    def test_chunk_size_in_single_precision(self, chunk: int) -> None:
        reference, chunked = self.trained(dtype="float32"), self.trained(dtype="float32", chunk=chunk)
        assert_close_states(reference.state(), chunked.state(), self.single_precision)

    def test_cohort_equals_the_oracle(self) -> None:
        engine = self.engine(chunk=7)
        before = {name: value.clone() for name, value in engine.state().items()}
        engine.round(1, {})
        config = method_named(self.method).config("tiny", self.options)
        expected = oracle_round(self.oracle(config, tiny.ITEMS), engine, before)
        assert expected.keys() == before.keys()
        assert_equal_states(engine.state(), expected, tolerance=1e-8)
        assert any(not torch.equal(before[name], value) for name, value in expected.items())

    def test_nothing_but_the_declared_upload_leaves_a_client(self) -> None:
        engine = self.engine()
        sent: list[set[str]] = []
        strategy = engine.pieces.strategy
        collector = strategy.collector

        def spy(clients: torch.Tensor) -> Any:
            uploads = collector(clients)
            collect = uploads._collect
            uploads._collect = lambda upload: (sent.append(set(upload.tensors)), collect(upload))[1]
            return uploads

        strategy.collector = spy
        engine.round(1, {})
        private = {spec.name for spec in engine.pieces.backbone.named(scope="private")}
        assert sent and all(names == set(strategy.uploads) for names in sent)
        assert not private & strategy.uploads

    def test_uploads_have_the_declared_shapes_only(self) -> None:
        """A table travels whole, whatever the client touched; networks and facts have the size of the spec."""
        engine = self.engine()
        strategy, backbone = engine.pieces.strategy, engine.pieces.backbone
        cohort = engine.gateway.train_chunk(1, strategy.download(), np.arange(tiny.USERS))
        shapes = {spec.name: (tiny.USERS, *spec.shape) for spec in backbone.named(scope="shared")}
        shapes |= {"held": (tiny.USERS, tiny.ITEMS)}
        upload = cohort.upload(strategy.uploads)
        for name, tensor in upload.tensors.items():
            assert tuple(dense(tensor).shape) == shapes.get(name, (tiny.USERS,))

    def test_bytes_are_those_of_every_clients_message(self) -> None:
        engine = self.engine()
        strategy = engine.pieces.strategy
        download = strategy.download()
        upload = self.engine().gateway.train_chunk(1, download, np.arange(tiny.USERS)).upload(strategy.uploads)
        report = engine.round(1, {})
        alone = [upload.of(torch.arange(tiny.USERS) == place) for place in range(tiny.USERS)]
        assert report.upload_bytes == sum(len(one.to_bytes()) for one in alone)
        if download.tables and not engine.pieces.backbone.named(scope="shared", kept=True):
            places = torch.arange(tiny.USERS).split(1)
            assert report.download_bytes == sum(len(download.of(place).to_bytes()) for place in places)

    def check_that_only_the_loss_travels(self) -> None:
        """For controls whose clients never meet."""
        engine = self.engine()
        report = engine.round(1, {})
        assert engine.pieces.strategy.uploads == {"loss"}
        assert report.download_bytes == 0
        assert report.upload_bytes < report.participants * 400

    def test_every_message_goes_through_bytes_and_changes_nothing(self) -> None:
        evaluator = Evaluator(tiny.cut(), tiny.TINY_STRICT, SEED)
        found = []
        for engine in (self.engine(), carry_bytes(self.engine())):
            cards = {view: evaluator.scorecard() for view in engine.views}
            engine.round(1, {})
            report = engine.round(2, cards)
            found.append((engine.state(), report.server, {view: card.tally() for view, card in cards.items()}))
        (state, notes, tallies), (carried, other_notes, other_tallies) = found
        assert_close_states(state, carried, 1e-10)
        assert notes == other_notes
        for view, tally in other_tallies.items():
            again = tally_through_bytes(tally, evaluator.rankings)
            one, other = (Result.of(of, evaluator.rankings, tiny.TINY_STRICT) for of in (tallies[view], again))
            assert one.metrics("test") == other.metrics("test")

    def test_asking_for_a_private_tensor_is_refused(self) -> None:
        engine = self.engine()
        cohort = engine.gateway.train_chunk(1, engine.pieces.strategy.download(), np.arange(4))
        for spec in engine.pieces.backbone.named(scope="private"):
            with pytest.raises(ValueError, match="private"):
                cohort.upload([spec.name])

    @pytest.mark.parametrize("fraction", [1.0, 0.5])
    def test_clients_held_apart_and_merged_equal_all_in_one_place(self, fraction: float) -> None:
        """One alone, some, and the rest, in any order; only messages go between them and the server."""
        order = np.random.default_rng(0).permutation(tiny.USERS)
        data = replace(tiny.cut().training, numbers=2**40 - 7 * order)  # ids that are no places, in no order
        together = LocalEngine(self.engine_with(fraction=fraction).pieces, data, SEED, dtype="float64")
        apart = Spread(
            self.engine_with(fraction=fraction).pieces,
            data,
            SEED,
            torch.float64,
            [
                order[:1],
                order[1:10],
                order[10:],
            ],
        )
        for number in (1, 2):
            notes = apart.round(number)
            assert together.round(number, {}).server == notes
        assert_close_states(together.state(), apart.state(), 1e-10)

    def test_partial_participation(self) -> None:
        """Those who stay away keep their private state; everybody is scored."""
        engine = self.engine_with(fraction=0.25)
        before = {name: value.clone() for name, value in engine.store.tensors.items()}
        recorder = Recorder(tiny.USERS, tiny.ITEMS)
        report = engine.round(1, {engine.view: recorder})
        assert report.participants == 6
        taking_part = engine.pieces.selection.participants(np.arange(tiny.USERS), SEED, 1)
        absent = np.setdiff1d(np.arange(tiny.USERS), taking_part)
        for name, value in engine.store.tensors.items():
            assert torch.equal(value[absent], before[name][absent])
        assert bool(torch.isfinite(recorder.scores).all())

    def engine_with(self, **options: Any) -> LocalEngine:
        method = method_named(self.method)
        assert isinstance(method, FederatedMethod)
        pieces = method.pieces(method.config("tiny", {**self.options, **options}), tiny.ITEMS)
        return LocalEngine(pieces, tiny.cut().training, SEED, dtype="float64")


@dataclass(frozen=True)
class PlainClient:
    """A client trained plainly."""

    number: int
    items: set[int]
    samples: int
    params: dict[str, torch.Tensor]


def plain_clients(
    oracle: Oracle, engine: LocalEngine, before: dict[str, torch.Tensor], number: int
) -> list[PlainClient]:
    """Local training of round `number`, one client after another, on the rows the engine draws; by client number."""
    procedure = engine.pieces.procedure
    rows = draw_rows(
        engine.data,
        np.arange(engine.data.users),
        procedure.negatives,
        Stream.of(SEED, "negatives", number),
        engine.dtype,
        virtual=procedure.virtual,
    )
    shuffle = Stream.of(SEED, "shuffle", number)
    template = oracle.federation.model.double().state_dict()
    trained = []
    for position, client in enumerate(rows.clients):
        start = {
            module_name: _of_client(before, name, int(client)).view_as(template[module_name])
            for name, module_name in oracle.names.items()
        }
        items, labels = plain.client_rows(rows, position)
        orders = plain.epoch_orders(rows, position, procedure.epochs, shuffle)
        model = oracle.federation.train_client(oracle.begin(start, len(items)), items, labels, orders)
        params = {
            name: model.state_dict()[module_name].view(_of_client(before, name, int(client)).shape)
            for name, module_name in oracle.names.items()
        }
        trained.append(PlainClient(int(client), set(items.tolist()), len(items), params))
    return sorted(trained, key=lambda client: client.number)


def oracle_round(oracle: Oracle, engine: LocalEngine, before: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the state should be after round 1."""
    clients = plain_clients(oracle, engine, before, 1)
    expected = {}
    for name, value in before.items():
        side, param = name.split(".", 1)
        trained = [client.params[param] for client in clients]
        expected[name] = (
            torch.stack(trained) if side == "client" else _merge(oracle.merge[param], value, trained, clients)
        )
    return expected


def _of_client(before: dict[str, torch.Tensor], name: str, client: int) -> torch.Tensor:
    return before[f"server.{name}"] if f"server.{name}" in before else before[f"client.{name}"][client]


def _merge(rule: str, before: torch.Tensor, values: list[torch.Tensor], clients: list[PlainClient]) -> Any:
    extra = {
        "weighted_mean": ([client.samples for client in clients],),
        "mean_over_holders": ([client.items for client in clients],),
    }
    return getattr(plain, rule)(before, values, *extra.get(rule, ()))


def assert_equal_states(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(
            value, other[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


def assert_close_states(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float) -> None:
    """Equal but for rounding: differences are held against the largest entry of their tensor."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        largest = float(value.double().abs().max()) if value.numel() else 0.0
        torch.testing.assert_close(
            other[name].double(), value.double(), rtol=0, atol=tolerance * largest, msg=lambda m, n=name: f"{n}: {m}"
        )
