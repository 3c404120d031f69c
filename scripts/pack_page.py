"""Packs the built chat page into the wheel, so that installing it needs no Node.

An editable install serves the page from the checkout and skips this. A page that exists is packed
as it is; ``make wheel`` brings it up to date.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT: Final = Path("frontend", "app", "dist")
PLACE: Final = "sluicegate/server/web"


class PackPage(BuildHookInterface[Any]):
    """The build hook that Hatchling calls for each wheel and each sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if it is missing, and add it to the files of a wheel.

        Raises:
            RuntimeError: There is no page, and none can be built.
        """
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / BUILT / "index.html").is_file():
            build(root)
        if self.target_name == "wheel":
            build_data["force_include"][str(root / BUILT)] = PLACE


def build(root: Path) -> None:
    """Build the page with the npm on PATH or in .venv."""
    path = os.pathsep.join([str(root / ".venv" / "bin"), os.environ.get("PATH", os.defpath)])
    npm = shutil.which("npm", path=path)
    if npm is None:
        raise RuntimeError(
            "The chat page is not built, and there is no npm to build it; see to Node."
        )
    commands = [["run", "build", "--workspace", "frontend/app"]]
    if not (root / "node_modules").is_dir():
        commands.insert(0, ["ci"])
    for command in commands:
        done = subprocess.run(
            [npm, "--silent", *command], cwd=root, env=os.environ | {"PATH": path}, check=False
        )
        if done.returncode:
            raise RuntimeError("The chat page could not be built; 'make page' shows why.")
