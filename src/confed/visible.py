"""Text of others, as it may be shown. Titles, ids and names are data; a terminal obeys whatever it is sent."""

from __future__ import annotations

import math
import re

LONGEST = 200
"""Characters of a value that are shown: enough for any title, and no screen is filled by one."""
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: escape sequences, bells, carriage returns
    "\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # change the direction, or are nothing
    "\ud800-\udfff"  # halves of characters, which no encoding has
    "\U000e0000-\U000e007f]"  # a text within the text
)


def visible(text: str) -> str:
    """In one line; what would not be seen but obeyed is spelled out, as \\x1b."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def visible_lines(text: str) -> str:
    """The same of a text of ours, whose lines are meant."""
    return "\n".join(map(visible, text.split("\n")))


def cut(text: str, longest: int = LONGEST) -> str:
    """At most so long, with an ellipsis for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown(value: object) -> str:
    """A value in one line of a sane length."""
    return cut(visible(cut(str(value), LONGEST + 1)))


def quoted(value: object) -> str:
    """The same as Python writes it, for errors: one sees where it begins and ends."""
    if isinstance(value, str):
        return repr(cut(value))
    if isinstance(value, int) and value.bit_length() > _WRITTEN_BITS:
        return f"a whole number of about {round(value.bit_length() * math.log10(2)):,} digits"
    return cut(repr(value))


_WRITTEN_BITS = 1 << 10
"""Of the largest whole number that is written out; of huge ones Python refuses to."""
