"""Interactions: who touched what, when, in one canonical order.

Copies of one dataset differ in row order, and the order decides which item is held out (two copies of
MovieLens-100K give different test items for 267 of 943 users). So rows are put into one order before
anything else sees them: (user, time stamp, item, rating) where there is time; the file's own order where
there is none, because then it is all there is. `content_hash` names the result, whatever file it came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from confed.data import readers
from confed.data.boundary import in_our_words
from confed.data.catalogue import PseudoTime, Time
from confed.data.columns import ROLES, Columns, require_different, require_roles
from confed.data.parquet import METADATA_KEY
from confed.data.reading import COLUMNS, refuse
from confed.data.sources import Notice, announce
from confed.data.values import Table, from_frame
from confed.errors import ConfedError, unknown_name
from confed.files import written_beside
from confed.visible import shown

Ints = NDArray[np.int64]

ONLY = ""
"""The domain of data that has one only."""

_TYPES = dict(zip(ROLES, (pl.String, pl.String, pl.Float64, pl.Int64), strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """A dataset. The constructor puts typed columns into canonical order; most callers want `of`."""

    frame: pl.DataFrame
    """Columns user, item (text), rating (float), timestamp (integer), in canonical order."""
    time: Time
    """`real` stamps, a trustworthy `order` (1, 2, 3 per user), or `none`: stamps only count a user's rows."""
    name: str = "data"
    titles: Mapping[str, str] = field(default_factory=dict)
    """Item id to title, for those that are known."""
    pseudo_time: PseudoTime = "file-order"
    """Which order the published loaders invent where there is no time (D-2)."""
    columns: Columns = field(default_factory=dict)
    """Which columns of a file or frame these were; nothing where none had to be found."""
    users: list[str] = field(init=False)
    """Distinct ids, numerically sorted if all are integers, else as text."""
    items: list[str] = field(init=False)
    user_index: Ints = field(init=False)
    """Per row, the position of its user in `users`."""
    item_index: Ints = field(init=False)

    @property
    def parts(self) -> Mapping[str, Interactions]:
        """By domain, as `Domains` has them."""
        return {ONLY: self}

    def __post_init__(self) -> None:
        if self.time not in get_args(Time):
            raise unknown_name("time", self.time, get_args(Time))
        if self.frame.height == 0:
            raise ConfedError(f"{self.name}: there are no interactions")
        frame = self.frame.select(pl.col(name).cast(kind) for name, kind in _TYPES.items())
        users, user = codes(frame["user"])
        items, item = codes(frame["item"])
        one_zero = pl.when(pl.col("rating") == 0).then(0.0).otherwise("rating").alias("rating")  # -0.0 is 0.0
        coded = frame.with_columns(user.alias("user code"), item.alias("item code"), one_zero)
        if self.time == "none":
            coded = coded.with_columns(timestamp=_running_number())
        else:
            # The rating comes last so that no permutation of a file's rows can matter.
            coded = coded.sort("user code", "timestamp", "item code", "rating", maintain_order=True)
        settled = {
            "frame": coded.select(ROLES),
            "users": users,
            "items": items,
            "user_index": coded["user code"].to_numpy().astype(np.int64),
            "item_index": coded["item code"].to_numpy().astype(np.int64),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        time: Time | None = None,
        titles: Mapping[str, str] | None = None,
        pseudo_time: PseudoTime | None = None,
        notice: Notice | None = None,
        **reading: Any,
    ) -> Interactions:
        """From a path, a pandas or polars frame, an Arrow table, or an Interactions (returned as it is).

        `columns` maps user, item, rating, timestamp, title to the source's names where these are unusual. Further
        options are those of `readers.read`; of these a frame understands user=, item=, rating=, timestamp=, title= and
        date_order=. Without ratings every rating is 1. `time` overrides what the columns say: `none` ignores
        stamps, `order` without stamps trusts the order of the rows. `notice` hears what had to be guessed.
        """
        if isinstance(source, Interactions):
            refuse([*(columns or ()), *reading], source.name, "an Interactions")
            return source
        told = {role: reading.pop(role, None) for role in COLUMNS}
        named = {**(columns or {}), **{role: name for role, name in told.items() if name is not None}}
        label = "the data frame"
        if isinstance(source, str | Path):
            label = str(source)
            require_roles(named)
            table = readers.read(source, **named, **reading)
            name = name or table.name or Path(source).name.split(".")[0]
        elif files := reading.keys() - {"date_order"}:
            raise ConfedError(f"{label}: {', '.join(sorted(files))}: these options are for files")
        else:
            with in_our_words(label, "frame", "make its columns text or numbers"):
                table = from_frame(_as_polars(source), named, **reading)
        for note in table.notes:
            (notice or _say_once)(f"notice: {note}")
        return cls(
            frame=_with_stamps(table, time, label),
            time=time or table.time,
            name=name or "data",
            titles=table.titles if titles is None else titles,
            pseudo_time=pseudo_time or table.pseudo_time or "file-order",
            columns=table.columns,
        )

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        return (
            f"Interactions({shown(self.name)}: {self.n_users:,} users, {self.n_items:,} items, "
            f"{len(self):,} interactions, time={self.time})"
        )

    @property
    def n_users(self) -> int:
        return len(self.users)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the canonical rows: the same for every copy and format of the same data."""
        digest = hashlib.sha256()
        for ids in (self.users, self.items):
            encoded = [one.encode() for one in ids]
            lengths = np.array([len(encoded), *map(len, encoded)], dtype="<i8")
            digest.update(lengths.tobytes())
            digest.update(b"".join(encoded))
        ratings = self.frame["rating"].to_numpy().astype("<f8")
        stamps = self.frame["timestamp"].to_numpy().astype("<i8")
        for column in (self.user_index.astype("<i8"), self.item_index.astype("<i8"), ratings, stamps):
            digest.update(column.tobytes())
        return digest.hexdigest()

    def keep_users(self, min_interactions: int, *, distinct: bool = False) -> Interactions:
        """Without users that have fewer rows, as the published loaders count, or fewer `distinct` items."""
        if min_interactions <= 1:
            return self
        count = (pl.col("item").n_unique() if distinct else pl.len()).over("user")
        kept = self.frame.filter(count >= min_interactions)
        if kept.height == 0:
            most = int(self.frame.select(count.max()).item())
            raise ConfedError(
                f"{self.name}: no user has {min_interactions} interactions, the most active has {most}; "
                "lower min_interactions (--min-interactions)"
            )
        return self if kept.height == len(self) else replace(self, frame=kept)

    def describe(self) -> dict[str, Any]:
        """The figures by which datasets are compared, and where columns had to be found, which were taken."""
        per_user = np.bincount(self.user_index)
        pair = np.sort(self.user_index * self.n_items + self.item_index)  # np.unique is slow on millions
        pairs = 1 + int(np.count_nonzero(pair[1:] != pair[:-1]))
        return {
            "users": self.n_users,
            "items": self.n_items,
            "interactions": len(self),
            "distinct_pairs": pairs,
            "density": pairs / (self.n_users * self.n_items),
            "min_per_user": int(per_user.min()),
            "median_per_user": float(np.median(per_user)),
            "max_per_user": int(per_user.max()),
            "time": self.time,
            **({"columns": dict(self.columns)} if self.columns else {}),
            "content_hash": self.content_hash,
        }

    def save(self, path: str | Path) -> Path:
        """Write Parquet that `Interactions.of(path)` reads back whole; nothing half-written is ever seen."""
        path = Path(path)
        if path.suffix.lower() != ".parquet":
            raise ConfedError(f"{path}: interactions are saved as Parquet, let the name end in .parquet")
        about = {
            "time": self.time,
            "name": self.name,
            "pseudo_time": self.pseudo_time,
            "titles": dict(self.titles),
        }
        with written_beside(path) as draft:
            self.frame.write_parquet(draft, metadata={METADATA_KEY: json.dumps(about)})
        return path


@cache
def _say_once(note: str) -> None:
    """A comparison reads its data several times."""
    announce(note)


def codes(column: pl.Series) -> tuple[list[str], pl.Series]:
    """The sorted distinct ids of a column, and per row the position of its id among them."""
    ids = pl.DataFrame({"id": column.unique()}).with_columns(number=pl.col("id").cast(pl.Int128, strict=False))
    order = ["id"] if ids["number"].null_count() else ["number", "id"]
    ordered = ids.sort(order)["id"]
    return ordered.to_list(), column.cast(pl.Enum(ordered)).to_physical()


def _running_number() -> pl.Expr:
    return pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("user")


def _with_stamps(table: Table, time: Time | None, label: str) -> pl.DataFrame:
    if "timestamp" in table.frame.columns:
        return table.frame
    if time == "real":
        raise ConfedError(
            f"{label}: --time real needs a column of time stamps; name it with --timestamp-column, "
            "or say --time order if the rows are in chronological order"
        )
    return table.frame.with_columns(timestamp=_running_number())


def _as_polars(source: Any) -> pl.DataFrame:
    """Frames are recognised by what they can do, so that pandas and pyarrow stay optional."""
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if hasattr(source, "columns") and hasattr(source, "itertuples"):
        return _from_pandas(source)
    if hasattr(source, "__arrow_c_stream__"):
        require_different([field.name for field in source.schema], "the data frame")
        return pl.DataFrame(source)
    raise ConfedError(
        f"cannot read interactions from a {type(source).__name__}: give a path, a pandas or polars frame, or "
        "an Arrow table"
    )


def _from_pandas(frame: Any) -> pl.DataFrame:
    require_different([str(name) for name in frame.columns], "the data frame")
    try:
        return pl.DataFrame(frame)
    except (ImportError, NotImplementedError, TypeError, ValueError):
        # Without pyarrow, or with values of several types in one column, the values can still be listed.
        return pl.DataFrame({str(name): _listed(frame[name]) for name in frame.columns}, strict=False)


def _listed(column: Any) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.to_list(), column.isna(), strict=True)]
