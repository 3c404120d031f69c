"""Starts a server in the background, as a reader does in another terminal, once it listens.

``python background.py PYTHON -IS FILE SOCKET SUBCOMMAND …`` runs every other subcommand in the
foreground. One server and one worker run at a time: a reader ends one to use its port again.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

SERVING: Final = ("dev", "replay", "serve", "worker")
LISTENS: Final = re.compile(r"https?://[\w.\[\]:-]+:[1-9]\d*")
SECONDS: Final = 90.0


def main() -> None:
    """Run the command."""
    command = sys.argv[1:]
    subcommand = command[4] if len(command) > 4 else ""
    if subcommand not in SERVING:
        os.execv(command[0], command)
    processes = Path(os.environ["SANDBOX_PROCESSES"])
    kind = "worker" if subcommand == "worker" else "server"
    running, log = processes / f"{kind}.pid", processes / f"{kind}.log"
    if running.exists():
        end(running)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    running.write_text(str(process.pid))
    deadline = time.monotonic() + SECONDS
    while not LISTENS.search(log.read_text("utf-8")):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{' '.join(command[4:])} does not serve:\n{log.read_text('utf-8')}")
        time.sleep(0.02)
    sys.stdout.write(log.read_text("utf-8"))


def end(running: Path) -> None:
    """End a server that runs, and wait until it is gone."""
    pid = int(running.read_text())
    running.unlink()
    try:
        os.killpg(pid, signal.SIGTERM)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            os.killpg(pid, 0)
            time.sleep(0.02)
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    main()
