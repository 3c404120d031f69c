"""``forked_command.py SOCKET …``: a command of ``sluicegate`` that a fork server runs.

It imports little: it is a process only so that a shell has one.
"""

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Run the command; returns its exit code."""
    request = {
        "argv": sys.argv[2:],
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "log": None,
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        line = json.dumps(request).encode() + b"\n"
        socket.send_fds(connection, [line[:4096]], [0, 1, 2])
        connection.sendall(line[4096:])
        with connection.makefile("r") as lines:
            pid = int(lines.readline())
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda received, _: os.kill(pid, received))
            code = lines.readline()
    return int(code) if code else 128 + signal.SIGKILL


if __name__ == "__main__":
    sys.exit(main())
