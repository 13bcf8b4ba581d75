"""Clients in other processes: every method gives what it gives in one."""

import socket
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest
import torch

from confed.errors import ConfedError, DamagedError, DivergedError
from confed.federations.frames import Frame
from confed.federations.processes import ProcessFederation
from confed.methods.registry import METHODS
from confed.runs.prepare import terms_of
from confed.testing import assert_close_states, tiny, tiny_domains
from tests.federations.pool import Pool
from tests.golden.cases import Case

pytestmark = pytest.mark.apart

WITH_CLIENTS = [name for name, method in METHODS.items() if method.has_clients]
TOLERANCES = {"float64": 1e-10, "float32": 1e-5}
ROUNDS = 3


def tiny_case(method, dtype="float64", **options):
    """Settings and data, with the options of the golden states, on the data of the conformance suite."""
    several = METHODS[method].domains == "several"
    protocol = tiny_domains.TINY_WARM if several else tiny.TINY_STRICT
    settings = Case(method, options).settings(dtype).model_copy(update={"protocol": protocol})
    return settings, tiny_domains.cut() if several else tiny.cut()


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    pool = Pool(tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("method", WITH_CLIENTS)
def test_any_number_of_workers_gives_the_same_parameters(method, dtype, pool):
    settings, cut = tiny_case(method, dtype)
    together = METHODS[method].trainer(terms_of(settings), cut, {})
    expected = [together.round(number) for number in range(1, ROUNDS + 1)]
    for workers in (1, 2, 3):
        apart = pool.trainer(settings, cut, workers)
        for number, one in enumerate(expected, start=1):
            other = apart.round(number)
            assert (one.participants, one.upload_bytes, one.download_bytes) == (
                other.participants,
                other.upload_bytes,
                other.download_bytes,
            )
            assert one.loss == pytest.approx(other.loss, rel=1e-4)
        assert_close_states(together.state(), pool.state(apart), TOLERANCES[dtype])
        pool.end(apart)


def test_what_a_site_cannot_do_is_said_where_the_server_is(pool):
    trainer = pool.trainer(*tiny_case("pfedrec", learning_rate=1e15), 2)
    with pytest.raises(DivergedError, match=r"the .* of .* is") as told:
        for number in (1, 2):
            trainer.round(number)
    assert told.value.client is not None, "whose it is arrives, too"
    pool.end(trainer)


def test_the_server_holds_nothing_of_clients(pool):
    trainer = pool.trainer(*tiny_case("pfedrec"), 2)
    trainer.round(1)
    assert trainer.federation.state() == trainer.federation.serving_state() == {}
    assert all(name.startswith("server.") for name in trainer.state())
    pool.end(trainer)


def test_sites_return_to_what_they_wrote(pool, tmp_path):
    trainer = pool.trainer(*tiny_case("cofedrec"), 3)
    trainer.round(1)
    own = dict(trainer.server.strategy.state())
    sites = trainer.commit(tmp_path / "one")
    trainer.round(2)
    second = pool.state(trainer)
    trainer.server.strategy.load(own)
    trainer.restore(tmp_path / "one", sites)
    trainer.round(2)
    again = pool.state(trainer)
    assert all(torch.equal(value, again[name]) for name, value in second.items())
    with pytest.raises(DamagedError, match="has parts of 2 workers, there are 3"):
        trainer.restore(tmp_path / "one", sites[:2])
    pool.end(trainer)


def test_a_site_that_cannot_be_made_says_why(pool):
    settings, cut = tiny_case("pfedrec")
    few = settings.protocol.model_copy(update={"negatives": 3, "more_negatives": ()})
    trainer = pool.trainer(settings.model_copy(update={"protocol": few}), cut, 2)
    with pytest.raises(ConfedError, match="is larger than the 4 sampled candidates"):
        trainer.round(1)
    pool.end(trainer)


def test_whoever_knocks_without_the_key_or_goes_at_once_keeps_nobody_out(pool):
    address = pool.folder / "line"
    told = Frame({"address": str(address), "key": "00" * 32})
    federation = ProcessFederation(told, [], [torch.arange(1)], torch.arange(1))
    for _ in range(2):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(address))
    with pytest.raises(AuthenticationError):
        Client(str(address), authkey=b"another")
    with Client(str(address), authkey=bytes(32)) as line:
        line.send_bytes((0).to_bytes(8, "little"))
        federation.gather(seconds=30)
    federation.close()
