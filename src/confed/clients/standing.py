"""What clients stand with before a round: whole tables and parameters, and the scores that these give."""

from __future__ import annotations

from torch import Tensor

from confed.clients.backbones import Backbone
from confed.clients.sampling import marked
from confed.clients.store import ClientStore
from confed.messages import Download
from confed.ragged import Ragged


def item_rows(backbone: Backbone, store: ClientStore, download: Download, clients: Tensor) -> dict[str, Tensor]:
    """Every item table whole, (1, items, d) where all `clients` share one and (clients, items, d) otherwise."""
    return {spec.name: item_table(spec.name, store, download, clients) for spec in backbone.named(role="item")}


def item_table(name: str, store: ClientStore, download: Download, clients: Tensor) -> Tensor:
    if name in download.tables:
        return versions(download.tables[name], download.table_of[clients])
    return store.read_tables(name, clients)


def stored_scores(
    backbone: Backbone, store: ClientStore, download: Download, clients: Tensor, positives: Ragged
) -> Tensor:
    """(clients, items) logits from what lies ready for the next round: the server's shared parameters, kept ones as
    the client has them. This is the `global` view, or `pushed` where clients keep their tables. `positives` are the
    training items of all clients.
    """
    if not backbone.reshapes:
        return backbone.logits(*_before_the_round(backbone, store, download, clients))
    params, tables, liked = ready(backbone, store, download, clients, positives)
    return backbone.logits(params, backbone.look(params, tables, liked))


def ready(
    backbone: Backbone, store: ClientStore, download: Download, clients: Tensor, positives: Ragged
) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
    """Parameters, whole item tables and marked training positives with which clients stand before the next round."""
    params, tables = _before_the_round(backbone, store, download, clients)
    return params, tables, marked(positives.take(clients.numpy()), next(iter(tables.values())).shape[1])


def _before_the_round(
    backbone: Backbone, store: ClientStore, download: Download, clients: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    kept = [p.name for p in backbone.named(kept=True) if p.role != "item"]
    shared = {
        p.name: versions(download.tables[p.name], download.table_of[clients])
        for p in backbone.named(kept=False, scope="shared", personal=False)
        if p.role != "item"
    }
    shared |= download.own_to(clients, backbone.own_names)
    return store.read(kept, clients) | shared, item_rows(backbone, store, download, clients)


def versions(tables: Tensor, table_of: Tensor) -> Tensor:
    """Each client's version, or the single one with a client axis of 1, which broadcasts."""
    return tables if len(tables) == 1 else tables.index_select(0, table_of)
