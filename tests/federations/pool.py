"""Three worker processes that serve one case after another, so that a suite starts them once."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import torch

from confed.data.shares import Roster
from confed.federations.federated import Federated
from confed.federations.frames import Codec, Frame
from confed.federations.processes import ProcessFederation, write_frame
from confed.federations.states import joined_states
from confed.methods.base import federated
from confed.methods.registry import method_named
from confed.runs.launch import deal
from confed.runs.parts import SitePart
from confed.runs.prepare import terms_of
from confed.tensors import load_sealed, part_of

MOST = 3


class Pool:
    """The server is in the test's own process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-c", "from confed.runs.children import main; main()", "site"]
        self.children = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(MOST)]

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()

    def trainer(self, settings, cut, workers) -> Federated:
        """The clients of `cut` at so many workers, as a run has them."""
        server = federated(method_named(settings.method)).server(terms_of(settings), Roster.of(cut))
        held = deal(cut, workers)
        line = {"address": str(self.folder / secrets.token_hex(8)), "key": secrets.token_hex(32), "threads": 1}
        codecs = [Codec(server.agreement, len(places), {}) for places in held]
        federation = ProcessFederation(Frame(line), codecs, held, server.ids)
        for number, places in enumerate(held):
            part = SitePart(settings, {}, cut.take(places.numpy()), server.rebuilt).to_bytes()
            write_frame(self.children[number].stdin, Frame({**line, "number": number}, [part]))
        federation.gather(seconds=60)
        return Federated(server, federation)

    def state(self, trainer: Federated) -> dict[str, torch.Tensor]:
        """All of it, the sites' parts from what they write."""
        where = self.folder / secrets.token_hex(8)
        written = [load_sealed(where, sealed) for sealed in trainer.commit(where)]
        own = {f"{trainer.server.prefix}{name}": value for name, value in trainer.server.strategy.state().items()}
        return own | joined_states([part_of(site, "state") for site in written], trainer.federation.held)

    def end(self, trainer: Federated) -> None:
        """The sites are free for the next case."""
        trainer.federation.close()


def children_of(pid: int) -> dict[int, str]:
    """The processes that `pid` has started, with their command lines."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if parent == pid:
                found[int(folder.name)] = command
    return found


def workers_of_this_process() -> list[int]:
    return [pid for pid, command in children_of(os.getpid()).items() if command.rstrip().endswith("site")]
