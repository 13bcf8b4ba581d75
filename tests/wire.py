"""Messages sent through their bytes, as between machines: the reader has nothing but bytes and schema."""

from __future__ import annotations

from typing import Any

from confed.engines.domains import SiloEngine
from confed.engines.local import LocalEngine
from confed.evaluation.evaluator import PARTS
from confed.messages import Agreement, Download, PeopleRows, Push, Tally, Upload, people_schema, tally_schema


def through_bytes(message: Any, agreed: Agreement) -> Any:
    """A device's message, read from what was written."""
    schemas = {Download: agreed.download, Push: agreed.push, Upload: agreed.upload}
    clients = len(message.clients if isinstance(message, Upload) else message.table_of)
    return type(message).from_bytes(message.to_bytes(), schemas[type(message)](clients))


def rows_through_bytes(rows: PeopleRows, widths: dict[str, int], everybody: int) -> PeopleRows:
    """A company's, or the server's to a company."""
    dtype = next(iter(rows.tensors.values())).dtype
    schema = people_schema(widths, dtype, everybody, loss=rows.loss is not None)
    return PeopleRows.from_bytes(rows.to_bytes(), schema)


def tally_through_bytes(tally: Tally, rankings: tuple[str, ...]) -> Tally:
    return Tally.from_bytes(tally.to_bytes(), tally_schema(rankings, PARTS))


def carry_bytes(trainer: Any) -> Any:
    """The trainer, whose messages all go through bytes from now on."""
    if isinstance(trainer, LocalEngine):
        agreed = trainer.pieces.agreement(trainer.dtype)
        trainer.carried = lambda message: through_bytes(message, agreed)  # type: ignore[method-assign]
    if isinstance(trainer, SiloEngine) and trainer.exchange:
        shared = next(iter(trainer.silos.values())).share()
        widths = {name: shared[name].shape[1] for name in trainer.exchange.names}
        people = trainer.server.people
        trainer.carried = lambda rows: rows_through_bytes(rows, widths, people)  # type: ignore[method-assign]
    return trainer
