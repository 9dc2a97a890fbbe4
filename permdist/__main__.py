"""The command ``permdist``; errors are one line, even while it is still loading."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from permdist.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("permdist: interrupted\n")
        sys.exit(130)
    except Exception as error:  # it could not be loaded
        if os.environ.get("PERMDIST_DEBUG", "0") not in ("", "0") or "--debug" in sys.argv:
            raise
        text = " ".join(str(error).split())
        sys.stderr.write(f"permdist: {type(error).__name__}: {text} (--debug shows where)\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
