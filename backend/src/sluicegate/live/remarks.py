"""What the server itself says to a live model, in the user's place."""

from __future__ import annotations

from typing import Final

CUT_SHORT: Final = "[The user has stopped this answer here.]"
"""What the model is told when somebody stops it."""
