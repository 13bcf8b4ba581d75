"""Runs whose clients are elsewhere: the launcher has the data, cuts it, and has a server and its sites started."""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from confed.data.interactions import ONLY
from confed.data.shares import AnySplit, Roster
from confed.errors import ConfedError
from confed.federations.processes import run_in_processes
from confed.federations.remote import Tell
from confed.runs.children import federated_method, make_site, run_server
from confed.runs.commits import gather, spread
from confed.runs.folder import RunFolder
from confed.runs.log import Line
from confed.runs.loop import Listener
from confed.runs.parts import ServerPart, SitePart
from confed.runs.prepare import Experiment, sample_for, terms_of


def deal(cut: AnySplit, sites: int) -> list[Tensor]:
    """The places of each site's clients, ascending: dealt out with the busiest first, so that sites are as busy."""
    if cut.matching is None:
        rows = cut.parts[ONLY].training.positives.lengths
    else:
        rows = np.array([len(part.training.positives.values) for part in cut.parts.values()])
    order = np.argsort(-rows, kind="stable")
    sites = min(sites, len(order))
    return [torch.from_numpy(np.sort(order[site::sites])) for site in range(sites)]


def launch(experiment: Experiment, folder: RunFolder, listener: Listener | None) -> None:
    """Run to the end, from wherever the folder's checkpoint stands; the folder is as a local run's then."""
    settings, cut = experiment.settings, experiment.cut
    held = deal(cut, settings.workers or os.cpu_count() or 1)
    rankings = {domain: list(of) for domain, of in experiment.examination.grading.rankings.items()}
    roster = Roster.of(cut)
    side = federated_method(settings).server(terms_of(settings), roster)
    parts = [cut.take(places.numpy()) for places in held]
    gather(folder)
    spread(folder, held, [list(part.parts) for part in parts], side.prefix)
    told = settings.without_whereabouts()
    server = ServerPart(told, rankings, roster, held, str(folder.path.resolve())).to_bytes()
    sample = sample_for(settings, cut)
    sites = [SitePart(told, rankings, part, side.rebuilt, sample).to_bytes() for part in parts]
    if listener:
        starting = f"starting a server and {len(sites)} worker{'s' if len(sites) > 1 else ''}"
        listener({"round": 0, "loss": None, "views": {}, "waiting": starting}, settings)
    try:
        _PLACES[settings.engine](experiment, server, sites, lambda line: _heard(line, experiment, listener))
    except BaseException:
        with suppress(Exception):  # what went wrong in the run is what the user has to know
            gather(folder)
        raise
    gather(folder)


def _heard(line: Line, experiment: Experiment, listener: Listener | None) -> None:
    if listener:
        listener(line, experiment.settings)


def _processes(experiment: Experiment, server: bytes, sites: list[bytes], tell: Tell) -> None:
    run_in_processes(server, sites, tell, entry="confed.runs.children")


def _ray(experiment: Experiment, server: bytes, sites: list[bytes], tell: Tell) -> None:
    try:
        from confed.federations.ray import run_in_ray  # noqa: PLC0415 - an extra that not everybody has
    except ImportError:
        raise ConfedError("--engine ray needs Ray: pip install 'confed[scale]'") from None
    address = experiment.settings.address
    run_in_ray(server, sites, tell, address=address, make_site=make_site, run_server=run_server)


_PLACES = {"processes": _processes, "ray": _ray}
