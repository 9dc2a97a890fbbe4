"""``python tests/faults``: put in faults for as long as one likes."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from faults.run import main

    sys.exit(main())
