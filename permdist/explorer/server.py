"""A server for the explorer's page, on the loopback interface only."""

from __future__ import annotations

import errno
import hmac
import json
import os
import secrets
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from permdist.explorer.answers import answer
from permdist.explorer.families import MOST_ITEMS
from permdist.explorer.page import page
from permdist.explorer.sources import Source

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESS = "127.0.0.1"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LONGEST_BODY = 1_000_000
LONGEST_READ = 64 * LONGEST_BODY  # of a body that is too long, so that its sender hears why
PATIENCE = 30.0  # seconds for a request to arrive


class Server(ThreadingHTTPServer):
    """Serve the page of a source to browsers on this computer.

    It listens on the loopback interface, answers only under an address with a random part, refuses
    requests that name another host (as a page elsewhere could make a browser do) and posts from
    other pages, and reads and writes no files. Each request has a thread; answers are computed one
    after the other.

    Parameters
    ----------
    source : Source, optional
        What the page shows first.
    port : int
        0 for a free one.

    Attributes
    ----------
    url : str
        The address of the page, with its random part.

    Raises
    ------
    ValueError
        If the port is in use, or may not be used.

    Examples
    --------
    >>> with Server() as server:
    ...     server.url
    'http://127.0.0.1:.../.../'
    """

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # there it would share a port that is in use

    def __init__(self, source: Source | None = None, port: int = 0) -> None:
        self.source = Source() if source is None else source
        self.token = secrets.token_urlsafe(16)
        self.turn = threading.Lock()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = "it is in use; choose another one, or none for a free one"
            elif error.errno == errno.EACCES:
                reason = "you may not use it; choose one from 1024 on"
            else:
                raise
            raise ValueError(f"--port: cannot serve on port {port}: {reason}") from error
        self.url = f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a browser that went away."""
        del request, client_address

    # ---- what can be asked -------------------------------------------------------------------

    def page(self) -> str:
        """Return the page that this server answers."""
        with self.turn:
            return page(self.source, live=True)

    def answer(self, given: Any) -> dict[str, Any]:
        """Return the answer to a setting, and the seconds that it took."""
        with self.turn:
            start = time.perf_counter()
            found = answer(given)
            return {"answer": found, "seconds": time.perf_counter() - start}

    def open_query(self, given: Any) -> dict[str, Any]:
        """Return the setting of another query of the file."""
        name = given.get("query") if isinstance(given, dict) else None
        if self.source.open_query is None or not isinstance(name, str):
            raise ValueError("query: there is no file with queries, or no query was named")
        with self.turn:
            found = self.source.open_query(name)
        return {"setting": found.setting, "title": found.title, "about": found.about}

    def share(self, given: Any) -> dict[str, Any]:
        """Return the page of a setting as a file to share."""
        with self.turn:
            title, about = self.source.title, self.source.about
            if isinstance(given, dict) and isinstance(given.get("title"), str):
                title, about = given["title"][:300], str(given.get("about", ""))[:2000]
                given = given.get("setting")
            return {"html": page(Source(given, title, about))}


class _Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    server_version = "permdist"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_GET(self) -> None:
        def respond() -> tuple[str, str]:
            if self._place() != "":
                raise _Refusal(HTTPStatus.NOT_FOUND, "there is no such page")
            return "text/html; charset=utf-8", self.server.page()

        self._respond(respond)

    def do_POST(self) -> None:
        def respond() -> tuple[str, str]:
            content = self._body()  # first, so that the sender is ready to listen
            asked: dict[str, Callable[[Any], Any]] = {
                "answer": self.server.answer,
                "query": self.server.open_query,
                "share": self.server.share,
            }
            call = asked.get(self._place())
            if call is None:
                raise _Refusal(HTTPStatus.NOT_FOUND, "there is no such page")
            self._check_origin()
            if content is None:
                raise ValueError(
                    f"setting: expected at most {LONGEST_BODY:,} bytes, got "
                    f"{self.headers['Content-Length']}; at most {MOST_ITEMS} items can be explored"
                )
            return "application/json", json.dumps(call(_read_json(content)), allow_nan=False)

        self._respond(respond)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""

    # ---- checks ------------------------------------------------------------------------------

    def _place(self) -> str:
        """Return what is asked for, below the secret part of the address."""
        _, _, rest = self.path.partition("/")
        token, slash, place = rest.partition("/")
        ours = hmac.compare_digest(token.encode(), self.server.token.encode())
        if not ours or not slash:
            raise _Refusal(HTTPStatus.NOT_FOUND, "use the address that permdist explore printed")
        return place.partition("?")[0]

    def _check_host(self) -> None:
        """Refuse requests that a page elsewhere sent here under a name of its own."""
        name, _, port = self.headers.get("Host", "").rpartition(":")
        if name not in LOOPBACK or port != str(self.server.server_port):
            raise _Refusal(HTTPStatus.FORBIDDEN, "this server answers on this computer only")

    def _check_origin(self) -> None:
        """Refuse what another page sends."""
        ours = [f"http://{name}:{self.server.server_port}" for name in LOOPBACK]
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        if (origin is not None and origin not in ours) or site not in ("same-origin", "none"):
            raise _Refusal(HTTPStatus.FORBIDDEN, "this server answers its own page only")
        if self.headers.get_content_type() != "application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")

    def _body(self) -> bytes | None:
        """Read what was posted; None if it is too long."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or len(length) > 15:
            self.close_connection = True
            raise _Refusal(HTTPStatus.BAD_REQUEST, "expected a Content-Length")
        left = int(length)
        if left <= LONGEST_BODY:
            return self.rfile.read(left)
        self.close_connection = True
        left = min(left, LONGEST_READ)
        while left > 0 and (part := self.rfile.read(min(left, 1 << 16))):
            left -= len(part)
        return None

    def _respond(self, respond: Callable[[], tuple[str, str]]) -> None:
        """Write a page or an answer, or why there is none."""
        status, kind = HTTPStatus.OK, "application/json"
        try:
            self._check_host()
            kind, text = respond()
        except _Refusal as refusal:
            status, text = refusal.status, _told(refusal)
            self.close_connection = True  # something may be left unread
        except (ValueError, TypeError) as error:
            status, text = HTTPStatus.BAD_REQUEST, _told(error)
        except OSError:  # the browser went away
            raise
        except Exception as error:
            status, text = HTTPStatus.INTERNAL_SERVER_ERROR, _told(error)
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _read_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("setting: expected JSON, got too many brackets") from None
    except ValueError as error:
        raise ValueError(f"setting: expected JSON, got {error}") from None


def _told(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return json.dumps({"error": text[:1000]})
