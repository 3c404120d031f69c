"""Makes ``python backend/bench`` find the package that it is."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)

if __name__ == "__main__":
    sys.exit(importlib.import_module("bench.command").main())
