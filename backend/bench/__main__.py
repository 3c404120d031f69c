"""The entry point of ``python backend/bench``; puts the package on the import path."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)

if __name__ == "__main__":
    sys.exit(importlib.import_module("bench.command").main())
