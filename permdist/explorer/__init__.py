"""The explorer: a local page to move scores, noise, labels and models and see what changes.

``permdist explore`` serves it. `answer` computes what the page shows, `page` makes the page
(served, or as a file of its own to share), and `Server` serves it on the loopback interface.
"""

from permdist.explorer.answers import answer
from permdist.explorer.families import FAMILIES, Family
from permdist.explorer.page import page
from permdist.explorer.server import Server
from permdist.explorer.sources import Source, of_ballots, of_query

__all__ = ["FAMILIES", "Family", "Server", "Source", "answer", "of_ballots", "of_query", "page"]
