"""Which characters a text of one line may have, such as a title or an id."""

from __future__ import annotations

import re
from typing import Final

# The tags are no escapes, since JSON Schema and Python write those of such characters differently.
HIDDEN: Final = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
"""The characters that a text of one line does not have, as those of a class in a pattern.

They end a line, reorder a text, or cannot be seen: controls, separators of lines and paragraphs,
bidirectional controls, and invisible format characters other than the joiners, which scripts and
emoji need. No part depends on a version of Unicode.
"""


ONE_LINE: Final = f"^[^{HIDDEN}]*$"
"""The pattern of a text of one line, for JSON Schema too."""


_ONE_LINE: Final = re.compile(ONE_LINE)


_HALF: Final = re.compile("[\ud800-\udfff]")


def is_one_line(text: str) -> bool:
    """Whether a text has no `HIDDEN` characters, and no lone surrogates."""
    return _ONE_LINE.fullmatch(text) is not None and not _HALF.search(text)
