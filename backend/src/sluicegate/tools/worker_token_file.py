"""The file with the bearer tokens of remote workers."""

from __future__ import annotations

from pathlib import Path

from sluicegate.errors import ConfigurationError


class TokenFile:
    """The file of credentials for workers, ``NAME TOKEN`` per line; read again for each session."""

    def __init__(self, path: str | None) -> None:
        """``path`` is None if no worker requires a credential.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        self._path = None if path is None else Path(path)
        # A file that cannot be read is reported at once.
        self.token("")

    def token(self, name: str) -> str | None:
        """Return the credential for a worker, None if it requires none."""
        if self._path is None:
            return None
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(
                f"The file {self._path} of worker_tokens cannot be read: {reason}."
            ) from None
        fields = (line.partition("#")[0].split() for line in lines)
        return next((entry[1] for entry in fields if len(entry) == 2 and entry[0] == name), None)
