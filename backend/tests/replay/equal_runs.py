"""Two runs of one conversation: equal but for ids, which are in step, and for moments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ID = re.compile(r"\b(?:adk|call|e|scripted|msg|turn|id)-[0-9a-f-]+|(?<=\(error )[0-9a-f]+(?=\))")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+Z-]+")

_NOT_RECORDED = {"decidedBy"}


class Pairs:
    """Pairs of a name in the recorded run and the id of this run in its place."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Start with known pairs, from the name in the recorded run to the id of this one."""
        self._here = dict(given)
        self._kept = {here: kept for kept, here in given.items()}

    def match(self, kept: Any, here: Any) -> None:
        """Compare two values; ids and moments are looked at by their place alone.

        Raises:
            AssertionError: They differ, or an id stands for two others.
        """
        if isinstance(kept, dict) and isinstance(here, dict):
            named = {
                self._replaced(key, self._kept): item
                for key, item in here.items()
                if key not in _NOT_RECORDED
            }
            assert kept.keys() == named.keys(), (kept, here)
            for key in kept:
                if not (isinstance(kept[key], float) and isinstance(named[key], float)):
                    self.match(kept[key], named[key])
        elif isinstance(kept, list) and isinstance(here, list):
            for one, other in zip(kept, here, strict=False):
                self.match(one, other)
            assert len(kept) == len(here), (kept, here)
        elif isinstance(kept, str) and isinstance(here, str):
            self._match_text(kept, here)
        else:
            assert kept == here

    def _match_text(self, kept: str, here: str) -> None:
        for name, other in zip(self._ids(kept), self._ids(here), strict=False):
            assert self._here.setdefault(name, other) == other, (name, other)
            assert self._kept.setdefault(other, name) == name, (name, other)
        assert _timeless(kept) == _timeless(self._replaced(here, self._kept))

    def here(self, value: Any) -> Any:
        """A value of the kept run as it would be in this one."""
        if isinstance(value, dict):
            return {self._replaced(key, self._here): self.here(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.here(item) for item in value]
        return self._replaced(value, self._here) if isinstance(value, str) else value

    def _ids(self, text: str) -> list[str]:
        return _ID.findall(text)

    def _replaced(self, text: str, names: Mapping[str, str]) -> str:
        if text in names:
            return names[text]
        return _ID.sub(lambda found: names.get(found[0], found[0]), text)


def _timeless(text: str) -> str:
    return _MOMENT.sub("then", text)
