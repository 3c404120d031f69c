"""Builds what is published, the same bytes for the same commit: ``make release``.

``build/release`` gets the wheel, the sdist, the npm tarball, the documentation as a tarball, and
``SHA256SUMS``. Nothing is published. Files get the time of the last commit, which also is
``SOURCE_DATE_EPOCH`` for the tools that are called, so that another machine can build the same
bytes and compare them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RELEASE: Final = ROOT / "build" / "release"
TOOLS: Final = ROOT / "build" / "release-tools"
SITE: Final = ROOT / "build" / "docs" / "html"
BIN: Final = Path(sys.executable).parent


def run(*command: str | Path, **environment: str) -> None:
    """Run a command in the root of the project, and end with its output if it fails.

    Raises:
        SystemExit: The command has failed.
    """
    words = [str(word) for word in command]
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, "PATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n'{' '.join(words)}' failed.")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def pack_folder(folder: Path, archive: Path, *, time: int) -> None:
    """Write a folder as a tarball whose bytes depend on names and contents alone."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = tarfile.TarInfo(
                f"{archive.name.partition('.tar')[0]}/{path.relative_to(folder)}"
            )
            entry.size = path.stat().st_size
            entry.mtime = time
            with path.open("rb") as file:
                tar.addfile(entry, file)
    with archive.open("wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=time) as packed:
        packed.write(data.getvalue())


def checksums(folder: Path) -> str:
    """Return the SHA-256 of each file of a folder, in the format of ``sha256sum``."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(folder.iterdir())
    ]
    return "".join(f"{line}\n" for line in lines)


def build(version: str, time: int) -> None:
    """Build every file of the release."""
    epoch = str(time)
    uv = (BIN / "uv", "build", "--no-build-isolation", "--python", sys.executable)
    run(*uv, "--sdist", "--wheel", "--out-dir", RELEASE, SOURCE_DATE_EPOCH=epoch)
    run("npm", "pack", "--pack-destination", str(RELEASE), "--workspace", "sluicegate")
    pack_folder(SITE, RELEASE / f"sluicegate-{version}-docs.tar.gz", time=time)
    # uv leaves a file that keeps the folder out of git.
    (RELEASE / ".gitignore").unlink(missing_ok=True)


def check(version: str) -> None:
    """Check the metadata of the Python files, and the entries and types of the npm package."""
    run(BIN / "python", "-m", "venv", "--without-pip", "--clear", TOOLS)
    sync = (BIN / "uv", "pip", "sync", "--python", TOOLS / "bin" / "python", "--require-hashes")
    certificates = os.environ.get("UV_SYSTEM_CERTS", "1")
    run(*sync, "release.lock", UV_SYSTEM_CERTS=certificates)
    python_files = [
        RELEASE / f"sluicegate-{version}{end}" for end in ("-py3-none-any.whl", ".tar.gz")
    ]
    run(TOOLS / "bin" / "twine", "check", "--strict", *python_files)
    run("npm", "run", "package", "--", str(RELEASE / f"sluicegate-{version}.tgz"))


def main() -> None:
    if changed := git("status", "--porcelain"):
        raise SystemExit(f"{changed}\nCommit these files first: a release is built from a commit.")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = str(project["version"])
    shutil.rmtree(RELEASE, ignore_errors=True)
    RELEASE.mkdir(parents=True)
    build(version, int(git("log", "-1", "--format=%ct")))
    check(version)
    sums = checksums(RELEASE)
    (RELEASE / "SHA256SUMS").write_text(sums, "utf-8")
    print(
        f"build/release has sluicegate {version} of commit {git('rev-parse', '--short', 'HEAD')}:"
    )
    print(sums, end="")


if __name__ == "__main__":
    main()
