"""Virtual environments of the peers, created from ``peers.lock`` on demand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.client import BenchError

ROOT: Final = Path(__file__).parent.parent.parent
LOCK: Final = Path(__file__).with_name("peers.lock")
_FOLDER: Final = ROOT / ".bench"
_NEWER: Final = ("python3.14", "python3.13", "python3.12")


def peers_python() -> str:
    """Return an interpreter of this version with the peers installed.

    Raises:
        BenchError: the packages cannot be installed.
    """
    return _made("peers", sys.executable)


def newer_python() -> str | None:
    """Return a Python of at least 3.12 with the peers installed, or None if there is none."""
    if sys.version_info >= (3, 12):
        return peers_python()
    for name in _NEWER:
        for found in _places(name):
            if _runs(found):
                return _made(name, found)
    return None


def node() -> tuple[str, str] | None:
    """Return Node and the folder of its AI SDK, or None if they are not installed."""
    package = ROOT / "e2e" / "conformance" / "clients" / "ai-7" / "package.json"
    binary = shutil.which("node", path=f"{Path(sys.executable).parent}{os.pathsep}{_path()}")
    is_there = (package.parent / "node_modules" / "ai").exists()
    return (binary, str(package)) if binary and is_there else None


def _places(name: str) -> list[str]:
    """Candidate paths of an interpreter: on ``PATH``, or installed by pyenv."""
    found = shutil.which(name)
    kept = Path.home() / ".pyenv" / "versions"
    beside = sorted(kept.glob(f"{name.removeprefix('python')}.*/bin/python"), reverse=True)
    return [*([found] if found else []), *map(str, beside)]


def _runs(python: str) -> bool:
    program = "import sys, venv; sys.exit(sys.version_info < (3, 12))"
    return subprocess.run([python, "-c", program], capture_output=True, check=False).returncode == 0


def _made(name: str, base: str) -> str:
    folder = _FOLDER / name
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = LOCK.read_text("utf-8")
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        print(f"installing the peers into {folder.relative_to(ROOT)}", file=sys.stderr)
        _run([base, "-m", "venv", "--clear", str(folder)])
        _install(str(python))
        stamp.write_text(wanted, "utf-8")
    return str(python)


def _install(python: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    options = ["--quiet", "--require-hashes", str(LOCK)]
    if uv.exists():
        os.environ.setdefault("UV_SYSTEM_CERTS", "1")
        done = subprocess.run(
            [str(uv), "pip", "sync", "--python", python, *options], capture_output=True, check=False
        )
        if done.returncode == 0:
            return
    # uv ignores the settings of pip; pip may reach packages that uv cannot.
    _run([python, "-m", "pip", "install", *options[:2], "-r", str(LOCK)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")


def _path() -> str:
    return os.environ.get("PATH", "")
