"""How far each client of a cohort has come in a phase: rates that shrink batch by batch, and who has stopped."""

from __future__ import annotations

import torch
from torch import Tensor

from confed.clients.optim import Rate
from confed.clients.procedures import Phase


class Pace:
    """Every client for itself: nothing here depends on who else is in the cohort."""

    def __init__(self, clients: int, phase: Phase) -> None:
        self.phase = phase
        self.running = torch.ones(clients, dtype=torch.bool)
        self._factor = torch.ones(clients, dtype=torch.float64)
        self._loss: Tensor | None = None

    def rate(self, rate: Rate, clients: int) -> Rate:
        """What is left of a rate for the first `clients` clients; nothing for those who have stopped."""
        if self.phase.batch_decay == 1.0 and self.phase.tolerance is None:
            return rate
        whole = rate[:clients] if isinstance(rate, Tensor) else rate
        return whole * self._factor[:clients] * self.running[:clients]

    def finish_batch(self, clients: int) -> None:
        self._factor[:clients] *= self.phase.batch_decay

    def finish_epoch(self, loss: Tensor) -> bool:
        """Stop clients whose mean loss of an epoch is nearly that of the epoch before; whether all have stopped."""
        tolerance = self.phase.tolerance
        if tolerance is None:
            return False
        if self._loss is not None:
            self.running &= (loss - self._loss).abs() >= tolerance * self._loss.abs()
        self._loss = loss
        return not bool(self.running.any())
