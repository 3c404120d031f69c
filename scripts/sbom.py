"""Writes software bills of materials (CycloneDX) from the lock files: ``make sbom``.

``python.cdx.json`` lists what the image of ``deploy/`` installs, ``npm.cdx.json`` what the chat
page in the wheel is built from and with. Each is compared with its lock file before it counts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "deploy" / "requirements.lock"
PAGE = "frontend/app"
_PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)


def locked_python(text: str) -> set[tuple[str, str]]:
    """Return the names and versions that a Python lock file pins."""
    return {(plain(name), version) for name, version in _PINNED.findall(text)}


def locked_npm(text: str, workspace: str) -> set[tuple[str, str]]:
    """Return the direct dependencies of a workspace with the versions that are locked."""
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    found = set()
    for name in packages[workspace].get("dependencies", {}):
        package = packages.get(f"{workspace}/node_modules/{name}", packages[f"node_modules/{name}"])
        # A link leads to a workspace of this tree.
        if not package.get("link"):
            found.add((name, package["version"]))
    return found


def listed(text: str) -> set[tuple[str, str]]:
    """Return the names and versions of the components of a bill of materials."""
    document = json.loads(text)
    if document.get("bomFormat") != "CycloneDX":
        raise SystemExit("The tool has not written a CycloneDX document.")
    return {
        (f"{part['group']}/{part['name']}" if part.get("group") else part["name"], part["version"])
        for part in document["components"]
    }


def plain(name: str) -> str:
    """Return the normalized name of a Python package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def require(wanted: set[tuple[str, str]], found: set[tuple[str, str]], name: str) -> None:
    """Fail unless a bill of materials lists everything that is locked."""
    missing = wanted - found
    if missing:
        first = "==".join(min(missing))
        raise SystemExit(f"{name} lacks {len(missing)} locked packages, the first is {first}.")


def write_python(folder: Path) -> Path:
    """Write the bill of materials of the Python packages."""
    path = folder / "python.cdx.json"
    program = Path(sys.executable).with_name("cyclonedx-py")
    command = [str(program), "requirements", str(LOCK), "--pyproject", str(ROOT / "pyproject.toml")]
    subprocess.run([*command, "--output-reproducible", "-o", str(path)], check=True)
    found = {(plain(name), version) for name, version in listed(path.read_text("utf-8"))}
    require(locked_python(LOCK.read_text("utf-8")), found, path.name)
    return path


def write_npm(folder: Path) -> Path:
    """Write the bill of materials of the chat page.

    With ``--omit dev`` npm leaves out what another workspace needs for its development only.
    """
    path = folder / "npm.cdx.json"
    command = ["npm", "sbom", "--package-lock-only", "--workspace", PAGE]
    written = subprocess.run(
        [*command, "--sbom-format", "cyclonedx"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    text = written.stdout.decode()
    lock = (ROOT / "package-lock.json").read_text("utf-8")
    require(locked_npm(lock, PAGE), listed(text), path.name)
    path.write_text(text, "utf-8")
    return path


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for path in (write_python(folder), write_npm(folder)):
        print(f"{path} lists {len(listed(path.read_text('utf-8')))} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
