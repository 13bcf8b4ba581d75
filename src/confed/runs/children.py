"""What the server and the sites of a run do that are not in the launcher's process."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from confed.data.shares import Share
from confed.evaluation.domains import Examination
from confed.federations.federated import Federated
from confed.federations.frames import Codec, Frame
from confed.federations.processes import Launcher, ProcessFederation, serve
from confed.federations.remote import Desk, RemoteFederation, Tell, error_frame
from confed.federations.site import Site
from confed.methods.base import FederatedMethod, federated
from confed.methods.registry import method_named
from confed.runs.folder import RunFolder
from confed.runs.loop import Loop
from confed.runs.parts import ServerPart, SitePart
from confed.runs.prepare import terms_of
from confed.runs.settings import Settings

Reach = Callable[[Sequence[Codec], Sequence[Tensor], Tensor], RemoteFederation]
"""How the server reaches its sites."""


def federated_method(settings: Settings) -> FederatedMethod:
    return federated(method_named(settings.method))


def make_site(part: bytes) -> tuple[Site, Codec]:
    """A site, from what it is told."""
    told = SitePart.from_bytes(part)
    settings = told.settings
    judges = Examination.of(told.cut, settings.protocol, settings.seed, told.rankings, told.sample).judges
    method = federated_method(settings)
    site = method.site(terms_of(settings), Share.of(told.cut), judges, rebuilt=told.rebuilt)
    return site, Codec(site.gateway.agreement, len(site.gateway.ids), told.rankings)


def run_server(part: bytes, reach: Reach, tell: Tell) -> bytes:
    """The loop of a run, from what its server is told; at the end a frame that says whether all went well."""
    try:
        told = ServerPart.from_bytes(part)
        server = federated_method(told.settings).server(terms_of(told.settings), told.roster)
        codecs = [Codec(server.agreement, len(places), told.rankings) for places in told.held]
        trainer = Federated(server, reach(codecs, told.held, told.roster.ids))
        folder = RunFolder(Path(told.folder), told.settings.run_id).on_behalf_of_the_holder()
        Loop(told.settings, trainer, told.grading, folder, lambda line, settings: tell(line)).run()
        return Frame({"done": True}).to_bytes()
    except Exception as error:
        return error_frame(error)


def main() -> None:
    """Of a process, with `server` or `site` as its argument. It may serve several runs, one after another; it ends with
    the launcher.
    """
    launcher = Launcher()
    work = {"server": _serve_run, "site": _serve_site}[sys.argv[1]]
    try:
        while True:
            work(launcher, launcher.told())
    except Exception:
        traceback.print_exc()
        os._exit(1)  # a thread still waits for the launcher


def _serve_site(launcher: Launcher, told: Frame) -> None:
    torch.set_num_threads(told.head["threads"])
    serve(Desk(make_site, told.messages[0]), told)


def _serve_run(launcher: Launcher, told: Frame) -> None:
    def reach(codecs: Sequence[Codec], held: Sequence[Tensor], ids: Tensor) -> ProcessFederation:
        federation = ProcessFederation(told, codecs, held, ids)
        launcher.tell(Frame({"listening": True}))
        federation.gather()
        return federation

    ended = run_server(told.messages[0], reach, lambda line: launcher.tell(Frame({"line": line})))
    launcher.tell(Frame.from_bytes(ended))
