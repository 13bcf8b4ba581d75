"""Sites as Ray actors, on this machine or on a cluster, and the server in an actor of its own.

Actors are told what the processes of `processes` are told, and bytes of frames are all that goes between them. Ray
starts a dead actor again with what it was told. Sites write their commits into the run's folder, which all machines of
a cluster must see under the same path.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
import torch
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError
from torch import Tensor

from confed.errors import ConfedError
from confed.federations.frames import Codec, Frame
from confed.federations.remote import MOST_DEATHS, Desk, LostSiteError, MakeSite, RemoteFederation, Tell, raise_error

RunServer = Callable[[bytes, Callable[[Sequence[Codec], Sequence[Tensor], Tensor], RemoteFederation], Tell], bytes]
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray warns of a change that is none for us
_POLL_SECONDS = 0.2
_OBJECT_STORE_BYTES = 512 << 20
"""Of a Ray that is started here: tables and sums are all that lies in it, and not for long."""


def run_in_ray(
    server: bytes,
    sites: Sequence[bytes],
    tell: Tell,
    *,
    address: str | None,
    make_site: MakeSite,
    run_server: RunServer,
) -> None:
    """Start a server and sites with what they are told, and hear the server out."""
    ours = not ray.is_initialized()
    if not ours and address:
        raise ConfedError("--address: this process is connected to a Ray already, leave it out")
    if ours:
        _connect(address)
    started: list[Any] = []
    try:
        cores = ray.cluster_resources().get("CPU", 1.0)  # type: ignore[no-untyped-call]
        site = _actor(_SiteActor).options(
            num_cpus=min(1.0, math.floor(1e4 * cores / len(sites)) / 1e4),
            max_restarts=MOST_DEATHS,
            scheduling_strategy="SPREAD",
        )
        name = f"confed-{secrets.token_hex(8)}"
        parts = _actor(_Parts).options(num_cpus=0, name=name).remote(list(sites))
        started.append(parts)
        actors = [site.remote(make_site, name, number) for number in range(len(sites))]
        central = _actor(_ServerActor).options(num_cpus=0, max_concurrency=2).remote(run_server, server, actors)
        started = [central, *actors, parts]
        _hear(central, tell)
    finally:
        for actor in started:  # the server first: it must not write while others gather
            ray.kill(actor)
        if ours:
            ray.shutdown()


def _actor(kind: type) -> Any:
    """Ray's types do not reach through `options`."""
    return ray.remote(kind)


def _connect(address: str | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        quiet |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"at {address}" if address else "on this machine"
        raise ConfedError(f"no Ray {where}: {error}") from None


def _hear(central: Any, tell: Tell) -> None:
    done = central.run.remote()
    heard = 0
    while True:
        ready, _ = ray.wait([done], timeout=_POLL_SECONDS)
        try:
            for line in ray.get(central.lines.remote(heard)):
                tell(line)
                heard += 1
            if ready:
                raise_error(Frame.from_bytes(ray.get(done)))
                return
        except RayActorError as error:
            raise ConfedError(f"the server's actor died: {error}") from None


class _Parts:
    """Has what the sites are told, for as long as one of them may have to be started again."""

    def __init__(self, parts: list[bytes]) -> None:
        self._parts = parts

    def of(self, number: int) -> bytes:
        return self._parts[number]


class _SiteActor:
    def __init__(self, make: MakeSite, parts: str, number: int) -> None:
        torch.set_num_threads(1)
        told: Any = ray.get_actor(parts)
        self._desk = Desk(make, ray.get(told.of.remote(number)))

    def ready(self) -> bool:
        return True

    def ask(self, question: bytes) -> Any:
        """A stream of answers."""
        yield from self._desk.answers(question)


class _ServerActor:
    def __init__(self, run: RunServer, part: bytes, actors: Sequence[Any]) -> None:
        self._run = run
        self._part = part
        self._actors = actors
        self._lines: list[dict[str, Any]] = []

    def run(self) -> bytes:
        def federation(codecs: Sequence[Codec], held: Sequence[Tensor], ids: Tensor) -> RayFederation:
            return RayFederation(self._actors, codecs, held, ids)

        run: Any = self._run
        ended: bytes = run(self._part, federation, self._lines.append)
        return ended

    def lines(self, after: int) -> list[dict[str, Any]]:
        return self._lines[after:]


class RayFederation(RemoteFederation):
    """The server's side."""

    def __init__(self, actors: Sequence[Any], codecs: Sequence[Codec], held: Sequence[Tensor], ids: Tensor) -> None:
        super().__init__(codecs, held, ids)
        self._actors = actors
        self._streams: dict[int, Any] = {}

    def repair(self) -> None:
        """Ray starts an actor again; whoever is still busy with the broken round answers when it is done."""
        for number, actor in enumerate(self._actors):
            while True:
                try:
                    ray.get(actor.ready.remote())
                    break
                except ActorUnavailableError:
                    time.sleep(_POLL_SECONDS)
                except ActorDiedError as error:
                    raise ConfedError(f"worker {number} died {1 + MOST_DEATHS} times: {error}") from None

    def _send(self, site: int, question: bytes) -> None:
        self._streams[site] = self._actors[site].ask.options(num_returns="streaming").remote(question)

    def _receive(self, site: int) -> bytes:
        try:
            answer: bytes = ray.get(next(self._streams[site]))
        except RayActorError as error:
            raise LostSiteError(f"site {site}") from error
        return answer
