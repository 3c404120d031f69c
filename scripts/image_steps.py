"""Runs the steps of ``deploy/Dockerfile`` without a container builder, and serves from the result.

Each ``COPY`` and ``RUN`` is done below a temporary folder that stands for the root of the image.
The stages share it, so what it cannot show is the base image. Then the command of the image serves
as its user, the page is fetched, and nothing but ``/data`` and ``/tmp`` may have been written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

ROOT: Final = Path(__file__).resolve().parent.parent
DOCKERFILE: Final = ROOT / "deploy" / "Dockerfile"
PLACES: Final = ("/opt", "/tmp", "/data")
"""The folders that the steps name, which stand below the temporary folder."""

WRITABLE: Final = ("data", "tmp")
PORT: Final = "18473"


@dataclass(frozen=True)
class Step:
    """An instruction and its argument, with continued lines joined."""

    instruction: str
    argument: str


def steps(text: str) -> list[Step]:
    """Return the instructions of a Dockerfile."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [Step(*re.split(r"\s+", line.strip(), maxsplit=1)) for line in joined.splitlines()]


def below(root: Path, text: str) -> str:
    """Return a text with the places of the image below a folder."""
    names = "|".join(place.removeprefix("/") for place in PLACES)
    return re.sub(rf"(?<![\w./-])/({names})(?=[/\s:\"]|$)", rf"{root}/\1", text)


def copy(root: Path, argument: str) -> None:
    """Do a COPY from the project; one from another stage is there already."""
    *sources, target = argument.split()
    if sources[0].startswith("--from="):
        return
    for pattern in sources:
        found = list(ROOT.glob(pattern))
        if not found:
            raise SystemExit(f"COPY names {pattern}, and there is no such file.")
        for path in found:
            shutil.copy(path, below(root, target))


def run(root: Path, argument: str) -> None:
    """Do a RUN, without the user: its id alone is used, later."""
    commands = [each.strip() for each in argument.split("&&")]
    kept = [each for each in commands if not each.startswith(("groupadd", "useradd", "chown"))]
    # The interpreter of the image is this one.
    kept = [re.sub(r"^python ", f"{sys.executable} ", each) for each in kept]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
    command = below(root, " && ".join(kept))
    if subprocess.run(["sh", "-euc", command], env=environment, check=False).returncode:
        raise SystemExit(f"This step has failed: {command}")


def protected(root: Path) -> set[tuple[Path, float]]:
    """Return the files outside the folders that may be written, with their times."""
    return {
        (path, path.lstat().st_mtime)
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in WRITABLE
    }


def can_be_run_by_others(program: str) -> bool:
    """Whether another user reaches a program; that of a home folder may be private."""
    return all(folder.stat().st_mode & 0o001 for folder in Path(program).resolve().parents)


def serve(root: Path, found: list[Step]) -> None:
    """Run the command of the image as its user and fetch the page."""
    arguments = {step.instruction: step.argument for step in found}
    user = int(arguments["USER"])
    environment = dict(each.split("=", 1) for each in below(root, arguments["ENV"]).split())
    path = environment["PATH"].replace("$PATH", os.environ["PATH"])
    environment |= {"PATH": path, "SLUICEGATE_PORT": PORT}
    command = json.loads(arguments["CMD"])
    (root / "tmp").chmod(0o1777)
    before = protected(root)
    # Only root may become another user.
    as_user = user if os.geteuid() == 0 and can_be_run_by_others(sys.executable) else None
    if as_user is not None:
        for folder in (root / "data").rglob("*"):
            os.chown(folder, user, user)
        os.chown(root / "data", user, user)
    process = subprocess.Popen(
        command,
        executable=shutil.which(command[0], path=path),
        cwd=below(root, arguments["WORKDIR"]),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        user=as_user,
        group=as_user,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        for address in ("/readyz", "/"):
            with urlopen(f"http://127.0.0.1:{PORT}{address}", timeout=30) as response:
                body = response.read()
        if b"<title>" not in body:
            raise SystemExit("The image does not serve the page.")
    finally:
        process.terminate()
        process.wait(timeout=120)
    if changed := protected(root) ^ before:
        raise SystemExit(f"The server has written {min(changed)[0]}, where an image is read-only.")
    print(f"The steps of deploy/Dockerfile work, and its command serves the page: {line.strip()}")
    if as_user is None:
        print(f"It ran as the user {os.geteuid()}: user {user} cannot run {sys.executable}.")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for place in PLACES:
            (root / place.removeprefix("/")).mkdir()
        found = steps(DOCKERFILE.read_text("utf-8"))
        for step in found:
            if step.instruction == "COPY":
                copy(root, step.argument)
            elif step.instruction == "RUN":
                run(root, step.argument)
        serve(root, found)


if __name__ == "__main__":
    main()
