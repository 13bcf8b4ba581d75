"""Whole files or none: written beside their place, then renamed into it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """A path to write to that becomes `path` if all goes well, and disappears otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield draft
        os.replace(draft, path)  # noqa: PTH105 - atomic also where the target exists
    finally:
        draft.unlink(missing_ok=True)
