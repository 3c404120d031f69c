"""The options of curl that the pages use, for machines without curl."""

from __future__ import annotations

import argparse
import sys
import urllib.request
from pathlib import Path


def main() -> None:
    """Send one request and write the body to the standard output."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-N", action="store_true")
    parser.add_argument("-O", action="store_true")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    given = parser.parse_args()
    data = given.d
    if data is not None and data.startswith("@"):
        data = Path(data[1:]).read_text("utf-8").replace("\n", "")
    headers = dict(header.split(": ", 1) for header in given.H)
    body = None if data is None else data.encode()
    request = urllib.request.Request(given.url, body, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        body = response.read()
    if given.O:
        Path(given.url.rsplit("/", 1)[1]).write_bytes(body)
    else:
        sys.stdout.buffer.write(body)


if __name__ == "__main__":
    main()
