"""Checkpoints of runs whose clients are elsewhere: sites write parts of their own.

Between runs a checkpoint is whole, as that of any other run: parts are gathered when a run ends or goes on, and spread
when it goes on elsewhere. So a run may be resumed at another place, or with other workers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from torch import Tensor

from confed.federations.remote import site_name
from confed.federations.states import cut_state, joined_states
from confed.runs.folder import RunFolder
from confed.tensors import joined, load_sealed, part_of, save_sealed


def gather(folder: RunFolder) -> None:
    """Make the checkpoint whole, if sites have parts of it."""
    manifest = folder.manifest()
    commit = folder.load_checkpoint() if manifest and manifest.sites else None
    if manifest is None or commit is None:
        return
    sites = [load_sealed(folder.parts, sealed) for sealed in commit.sites]
    places = [part_of(site, "site")["ids"] for site in sites]  # in a simulation clients are numbered as they stand
    state, best = (joined_states([part_of(site, part) for site in sites], places) for part in ("state", "best"))
    whole = replace(commit, state={**commit.state, **state}, best={**commit.best, **best}, sites=())
    folder.save_checkpoint(whole, manifest.log)


def spread(folder: RunFolder, held: Sequence[Tensor], domains: Sequence[Collection[str]], prefix: str) -> None:
    """Divide the checkpoint, if there is one: each site gets the part of its clients, who are `held` by their places,
    or of the companies of its `domains`. The names of the server's tensors begin with `prefix`.
    """
    manifest, whole = folder.manifest(), folder.load_checkpoint()
    if manifest is None or whole is None:
        return
    sites = []
    for site, places in enumerate(held):
        parts = {
            "state": cut_state(whole.state, places, domains[site]),
            "best": cut_state(whole.best, places, domains[site]),
            "site": {"ids": places},
        }
        sites.append(save_sealed(folder.parts, site_name(site), joined(parts)))
    state, best = (
        {name: tensor for name, tensor in of.items() if name.startswith(prefix)} for of in (whole.state, whole.best)
    )
    folder.save_checkpoint(replace(whole, state=state, best=best, sites=tuple(sites)), manifest.log)
