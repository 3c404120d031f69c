"""``sluicegate token``: makes the token of a user or a worker."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sys

from sluicegate.errors import ConfigurationError


def make_token(name: str, file: str | None) -> None:
    """Print the line of a token for the file of the server, and the token unless it has a file.

    Raises:
        ConfigurationError: the name cannot stand in the file, or ``file`` cannot be written.
    """
    if not re.fullmatch(r"[\w.@+-]+", name):
        raise ConfigurationError(f"The name {name!r} has other characters than letters and .@+-_.")
    made = secrets.token_urlsafe(32)
    if file is None:
        # A redirection to the file of the server gets the line alone.
        sys.stderr.write(f"token: {made}\n")
    else:
        try:
            # "x" refuses an existing file, whose token may be in use.
            with open(file, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
                out.write(f"{made}\n")
        except OSError as error:
            raise ConfigurationError(f"{file} cannot be written: {error.strerror}.") from error
    sys.stdout.write(f"sha256:{hashlib.sha256(made.encode()).hexdigest()} {name}\n")
