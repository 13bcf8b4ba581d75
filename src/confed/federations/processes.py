"""Sites in processes of this machine, and the server in one of its own.

Sites connect to the server over a local socket, whose key only the launcher's children have, and say which site they
are. A site whose connection ends connects anew; so does the process that replaces a dead one. On every line there are
frames as bytes: `send_bytes` and `recv_bytes` do not pickle.

A child reads what it is told from its standard input, and ends when that is closed: when the launcher is gone. The
server tells the launcher on its standard output what happens, a frame for each round and one at the end.
"""

from __future__ import annotations

import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from torch import Tensor

from confed.errors import ConfedError
from confed.federations.frames import Codec, Frame
from confed.federations.remote import MOST_DEATHS, Desk, LostSiteError, RemoteFederation, Tell, raise_error
from confed.files import sweep_temporary, temporary_prefix

_LENGTH = 8


def run_in_processes(server: bytes, sites: Sequence[bytes], tell: Tell, *, entry: str) -> None:
    """Start a server and sites with what they are told, and hear the server out. They run the `main` of the module
    `entry`, with `server` or `site` as its argument.
    """
    with _private_folder() as private, _Children(Path(private) / "line", entry) as children:
        children.start_server(server)
        for number, part in enumerate(sites):
            children.start_site(number, part, threads=max((os.cpu_count() or 1) // len(sites), 1))
        children.hear(tell)


def _private_folder() -> tempfile.TemporaryDirectory[str]:
    """For the socket, whose path may have a hundred characters."""
    sweep_temporary()
    short = len(tempfile.gettempdir()) < 60
    return tempfile.TemporaryDirectory(prefix=temporary_prefix(), dir=None if short else "/tmp")


class _Children:
    """The processes of a run; they end with the block."""

    def __init__(self, address: Path, entry: str) -> None:
        self._entry = entry
        self._told = {"address": str(address), "key": secrets.token_hex(32)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._keepers: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._problem = ""
        self._over = False

    def __enter__(self) -> _Children:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._over = True
        for process in self._processes.values():
            process.kill()
        for keeper in self._keepers:
            keeper.join()
        for process in self._processes.values():
            process.wait()

    def start_server(self, part: bytes) -> None:
        self._start("server", "server", Frame(self._told, [part]), out=subprocess.PIPE)
        self._frame()  # it listens

    def start_site(self, number: int, part: bytes, threads: int) -> None:
        told = Frame({**self._told, "number": number, "threads": threads}, [part])
        self._keepers.append(threading.Thread(target=self._keep_alive, args=(number, told), daemon=True))
        self._keepers[-1].start()

    def _keep_alive(self, number: int, told: Frame) -> None:
        """Start a site, and again whenever it dies; if that does not help, end the run."""
        code: int | None = None
        for _ in range(1 + MOST_DEATHS):
            try:
                process = self._start(f"site {number}", "site", told)
            except OSError:
                continue  # it died while it was told what to do, or could not be started at all
            code = process.wait() if process else None
            if self._over:
                return
        self._problem = f"worker {number} died {1 + MOST_DEATHS} times, the last time with exit code {code}"
        self._processes["server"].kill()

    def _start(self, name: str, role: str, told: Frame, out: int | None = None) -> subprocess.Popen[bytes] | None:
        """In a session of its own, so that Ctrl-C reaches the launcher alone, which ends the others; nobody is started
        when all is over.
        """
        command = [sys.executable, "-c", f"from {self._entry} import main; main()", role]
        with self._lock:
            if self._over:
                return None
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, start_new_session=True)
            self._processes[name] = process
        write_frame(cast(BinaryIO, process.stdin), told)
        return process

    def hear(self, tell: Tell) -> None:
        """What the server says, to its end."""
        while "done" not in (frame := self._frame()).head:
            tell(frame.head["line"])

    def _frame(self) -> Frame:
        """The server's next; what went wrong there goes wrong here."""
        server = self._processes["server"]
        frame = read_frame(cast(BinaryIO, server.stdout))
        if frame is None:
            raise ConfedError(self._problem or f"the server's process ended with exit code {server.wait()}")
        raise_error(frame)
        return frame


def write_frame(pipe: BinaryIO, frame: Frame) -> None:
    data = frame.to_bytes()
    pipe.write(len(data).to_bytes(_LENGTH, "little") + data)
    pipe.flush()


def read_frame(pipe: BinaryIO) -> Frame | None:
    """None at the end."""
    length = pipe.read(_LENGTH)
    data = pipe.read(int.from_bytes(length, "little"))
    whole = len(length) == _LENGTH and len(data) == int.from_bytes(length, "little")
    return Frame.from_bytes(data) if whole else None


class Launcher:
    """In a child: whoever started it. Prints go to the standard error from now on; the output is for frames."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._frames: queue.Queue[Frame] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while frame := read_frame(sys.stdin.buffer):
                self._frames.put(frame)
        finally:
            os._exit(0)  # the launcher is gone

    def told(self) -> Frame:
        """What it says next."""
        return self._frames.get()

    def tell(self, frame: Frame) -> None:
        write_frame(self._out, frame)


def serve(desk: Desk, told: Frame) -> None:
    """In a child: answer the questions of the server of whom it was `told`, until there is none any more."""
    while True:
        try:
            line = Client(told.head["address"], authkey=bytes.fromhex(told.head["key"]))
        except OSError:
            return
        with line, suppress(EOFError, OSError):  # the server let go of all lines, or is gone
            line.send_bytes(told.head["number"].to_bytes(_LENGTH, "little"))
            while True:
                for answer in desk.answers(line.recv_bytes()):
                    line.send_bytes(answer)


class ProcessFederation(RemoteFederation):
    """The server's ends of the lines."""

    def __init__(self, told: Frame, codecs: Sequence[Codec], held: Sequence[Tensor], ids: Tensor) -> None:
        super().__init__(codecs, held, ids)
        self._listener = Listener(told.head["address"], authkey=bytes.fromhex(told.head["key"]))
        self._arrivals: queue.Queue[tuple[int, Connection]] = queue.Queue()
        self._lines: dict[int, Connection] = {}
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line = self._listener.accept()
                self._arrivals.put((int.from_bytes(line.recv_bytes(_LENGTH), "little"), line))
            except (AuthenticationError, EOFError, OSError):
                if self._closed:
                    return
                # Else somebody without the key, or a site that died at the door.

    def gather(self, seconds: float | None = None) -> None:
        """Wait until every site is connected. The launcher sees to it that they come, or ends this process."""
        while len(self._lines) < len(self.held):
            try:
                site, line = self._arrivals.get(timeout=seconds)
            except queue.Empty:
                raise LostSiteError(f"nobody came within {seconds} seconds") from None
            self._lines[site] = line

    def repair(self) -> None:
        """Let go of all lines: whoever is still busy with the broken round comes back when it is done."""
        self._let_go()
        self.gather()

    def close(self) -> None:
        """Sites find nobody to come back to, and are free for another server."""
        self._closed = True
        self._listener.close()
        self._let_go()

    def _let_go(self) -> None:
        for line in self._lines.values():
            line.close()
        self._lines = {}

    def _send(self, site: int, question: bytes) -> None:
        try:
            self._lines[site].send_bytes(question)
        except OSError as error:
            raise LostSiteError(f"site {site}") from error

    def _receive(self, site: int) -> bytes:
        try:
            return self._lines[site].recv_bytes()
        except (EOFError, OSError) as error:
            raise LostSiteError(f"site {site}") from error
