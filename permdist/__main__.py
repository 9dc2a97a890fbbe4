"""The command ``permdist``: Ctrl-C ends it in one line, even while it is still loading."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from permdist.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("permdist: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
