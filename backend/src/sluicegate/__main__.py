"""``python -m sluicegate``: the command line."""

from __future__ import annotations

import sys

from sluicegate.server.cli import main

sys.exit(main())
