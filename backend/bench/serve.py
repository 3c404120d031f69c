"""``python -m bench.serve KIND`` serves one of `bench.servers` and prints its URL."""

from __future__ import annotations

import importlib
import socket
import sys

import uvicorn


def main() -> None:
    """Serve on a free port of the loopback address, with the defaults of uvicorn."""
    app = importlib.import_module(f"bench.servers.{sys.argv[1]}").build()
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
