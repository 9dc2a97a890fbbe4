"""``python tests/fuzz``: fuzz for as long as one likes, or replay a case."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    # Threads of linear algebra would be forked, and processor time is counted.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("MPLBACKEND", "Agg")
    # What the library may take is less than what the guard allows: it has to refuse in time.
    os.environ.setdefault("PERMDIST_MEMORY_LIMIT", "500e6")
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from fuzz.run import main

    sys.exit(main())
