"""The only things that cross the line between clients and the server: named tensors with a byte form.

`tables` is how the item tables of many clients are held in little memory until they travel, or instead of it.
"""

from confed.messages.agreement import Agreement, Needs, Shape
from confed.messages.devices import Download, Push, Upload, addressed
from confed.messages.sums import Over, PartialSum, Sums, summed
from confed.messages.tables import (
    HeldTables,
    Pull,
    PulledTables,
    Sent,
    TableRows,
    add_rows,
    dense,
    gather_rows,
    weighted_sum,
    with_padding_row,
)
from confed.messages.tally import Tally, tally_schema
from confed.messages.wire import Field, Schema, decode, encode

__all__ = [
    "Agreement",
    "Download",
    "Field",
    "HeldTables",
    "Needs",
    "Over",
    "PartialSum",
    "Pull",
    "PulledTables",
    "Push",
    "Schema",
    "Sent",
    "Shape",
    "Sums",
    "TableRows",
    "Tally",
    "Upload",
    "add_rows",
    "addressed",
    "decode",
    "dense",
    "encode",
    "gather_rows",
    "summed",
    "tally_schema",
    "weighted_sum",
    "with_padding_row",
]
