# SPDX-License-Identifier: Apache-2.0
"""gradscribe live: a page in the browser with a function beside its derivative, drawn again when a file is saved.

The server listens on the loopback only and answers only requests whose address begins with a random token.  It refuses
a Host that is not this machine's loopback, so a page of another site cannot reach it under a name of its own (DNS
rebinding), and a foreign Origin.  It serves the files in FILES and views; nothing that a request contains is executed.
"""
import errno
import hmac
import json
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gradscribe.ast_transform.source.diagnose import KindError
from gradscribe.live_process import LIMIT, Ended, Watch, Workers

FILES = {"": ("index.html", "text/html"), "live.js": ("live.js", "text/javascript"),
         "live.css": ("live.css", "text/css"), "codemirror.js": ("codemirror.js", "text/javascript"),
         "codemirror.LICENSE": ("codemirror.LICENSE", "text/plain")}
LONGEST, BEAT = 20_000, 10.0            # bytes of a request, seconds between signs of life
HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{}'; connect-src 'self'; img-src data:; "
          "base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'self' vscode-webview: vscode-file: https://*.vscode-cdn.net")    # the frames of VS Code


class Wanted(NamedTuple):
    """What the command line asks for: names of functions, the first transformation, arguments as text."""
    names: list[str]
    chain: list[tuple[str, str | None]]
    arguments: str


class Page:
    """A live page: its address, its processes, its watch over files; `serve` runs until `close`."""

    def __init__(self, wanted: Wanted, port: int = 0, limit: float = LIMIT):
        """Raises KindError if the port cannot be had, or if the function cannot be imported and transformed."""
        self.wanted, self.token = wanted, secrets.token_urlsafe(32)
        self.server = listening(port, handler_of(self))
        self.workers = Workers(limit)
        self.watch = Watch(self.workers.renew)
        try:
            self.first = self.ask({"do": "begin", "chain": wanted.chain})
            if self.first["error"] is not None:
                raise KindError(self.first["error"]["text"])
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/{self.token}/"

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply of a process to a request; the files that it has read are looked at from then on."""
        try:
            reply = self.workers.ask({"names": self.wanted.names, "trusted": self.wanted.arguments, **request})
        except Ended as error:
            return {"error": {"kind": "Ended", "text": str(error), "places": []}}
        self.watch.see(reply.pop("files"))
        return reply

    def start(self) -> dict[str, Any]:
        """What the page shows first."""
        return {"names": self.first["names"], "recipe": self.first["recipe"], "arguments": self.wanted.arguments}

    def view(self, asked: Any) -> dict[str, Any]:
        """The view that a request asks for; ValueError for a request of another form."""
        kinds = {"number": int, "recipe": str, "arguments": str, "timed": bool}
        if not isinstance(asked, dict) or set(asked) != set(kinds) or any(
                type(asked[name]) is not kind for name, kind in kinds.items()):
            raise ValueError("a view has a number, a recipe, arguments, and timed")
        if not 0 <= asked["number"] < len(self.wanted.names):
            raise ValueError("there is no function of this number")
        count = self.watch.count
        return {**self.ask({"do": "view", **asked}), "count": count}

    def serve(self) -> None:
        """Answer requests until `close` is called from another thread, or Ctrl-C."""
        self.server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop the processes and the watch, and give the port back."""
        self.watch.close()
        self.workers.close()
        self.server.server_close()


class Server(ThreadingHTTPServer):
    """A thread for each request, which ends with the program."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"       # on Windows, it would share a port that another program has


def listening(port: int, handler: type) -> Server:
    """A server on the loopback; KindError if it cannot have the port."""
    if not 0 <= port < 65536:
        raise KindError(f"{port} is not a port", None, "Ports are numbers up to 65535; 0 finds a free one.")
    try:
        return Server(("127.0.0.1", port), handler)
    except OSError as error:
        why = "is taken by another program" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise KindError(f"port {port} {why}", None, "Give another one with --port, or leave it out: a free one is "
                        "found.") from error


# --- requests ---------------------------------------------------------------------------------------------------------

def handler_of(page: Page) -> type[BaseHTTPRequestHandler]:
    """The class that answers the requests to a page."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, timeout = "HTTP/1.1", 60
        server_version, sys_version = "Gradscribe", ""

        def log_message(self, *_):
            """The requests have the token, so they are not printed."""

        def send_error(self, code, *_):
            """Answers what the library refuses, such as other methods and long addresses, like other errors."""
            self.requestline, self.command = getattr(self, "requestline", ""), getattr(self, "command", "")
            send_status(self, HTTPStatus(code))

        def do_GET(self):  # noqa: N802  (the library's name)
            """Send a file of the page, what it shows first, or the stream of changes."""
            name = admitted(page, self)
            if name is None:
                return
            if name == "start":
                send(self, json.dumps(page.start()).encode(), "application/json")
            elif name == "events":
                stream(page, self)
            elif name in FILES:
                file, kind = FILES[name]
                send_file(self, file, kind)
            else:
                send_status(self, HTTPStatus.NOT_FOUND)

        def do_POST(self):  # noqa: N802
            """Send a view."""
            name = admitted(page, self)
            if name is None:
                return
            if name != "view":
                send_status(self, HTTPStatus.NOT_FOUND)
                return
            try:
                asked = json.loads(body_of(self))
                reply = page.view(asked)
            except (ValueError, RecursionError):
                send_status(self, HTTPStatus.BAD_REQUEST)
                return
            send(self, json.dumps(reply).encode(), "application/json")

    return Handler


def admitted(page: Page, handler: BaseHTTPRequestHandler) -> str | None:
    """What a request names after the token; None for one that was refused."""
    host, origin = handler.headers.get_all("Host") or [], handler.headers.get("Origin")
    token, slash, name = urlsplit(handler.path).path.lstrip("/").partition("/")
    if len(host) != 1 or not HOST.fullmatch(host[0]) or (origin is not None and urlsplit(origin).netloc != host[0]) \
            or not hmac.compare_digest(token.encode("utf-8", "replace"), page.token.encode()):
        send_status(handler, HTTPStatus.FORBIDDEN)
        return None
    if not slash:
        send_status(handler, HTTPStatus.NOT_FOUND)
        return None
    return name


def body_of(handler: BaseHTTPRequestHandler) -> bytes:
    """The body of a request; ValueError if it has none, is not JSON or is long."""
    length = handler.headers.get("Content-Length", "")
    if handler.headers.get_content_type() != "application/json" or not re.fullmatch(r"\d{1,9}", length) or \
            int(length) > LONGEST:
        raise ValueError("no body of JSON")
    return handler.rfile.read(int(length))


def send_file(handler: BaseHTTPRequestHandler, file: str, kind: str) -> None:
    """Send a file of the page; styles that its scripts add have the nonce of this answer."""
    content = (resources.files("gradscribe") / "live_assets" / file).read_bytes()
    nonce = secrets.token_urlsafe(16)
    send(handler, content.replace(b"{{nonce}}", nonce.encode()) if file == "index.html" else content,
         f"{kind}; charset=utf-8", nonce)


def send(handler: BaseHTTPRequestHandler, content: bytes, kind: str, nonce: str = "") -> None:
    """Send an answer."""
    headers(handler, HTTPStatus.OK, kind, nonce)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def send_status(handler: BaseHTTPRequestHandler, status: HTTPStatus) -> None:
    """Send an error without a content, and end the connection: a body may not have been read."""
    handler.close_connection = True
    headers(handler, status, "text/plain", "")
    handler.send_header("Content-Length", "0")
    handler.send_header("Connection", "close")
    handler.end_headers()


def headers(handler, status, kind, nonce):
    """The status and the headers that all answers have: no other site reads or frames them, and nobody keeps them."""
    handler.send_response(status)
    for name, value in (("Content-Type", kind), ("Content-Security-Policy", POLICY.format(nonce or "none")),
                        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin")):
        handler.send_header(name, value)


def stream(page: Page, handler: BaseHTTPRequestHandler) -> None:
    """Send the count of changes, now and after each change, until the reader goes: server-sent events."""
    handler.close_connection = True
    headers(handler, HTTPStatus.OK, "text/event-stream", "")
    handler.send_header("Connection", "close")
    handler.end_headers()
    known = -1
    try:
        while not page.watch.closed:
            count = page.watch.wait(known, BEAT)
            handler.wfile.write(f"data: {count}\n\n".encode() if count != known else b": here\n\n")
            known = count
    except OSError:                     # the reader has gone
        pass


# --- the command ------------------------------------------------------------------------------------------------------

def live(wanted: Wanted, port: int, browser: bool, until_closed: bool) -> None:
    """Serve a page until Ctrl-C, or with `until_closed` until standard input ends; print its address."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)          # processes are ended then too
    page = Page(wanted, port)
    try:
        print(page.address, flush=True)
        if until_closed:
            threading.Thread(target=end_with_input, args=(page,), daemon=True).start()
        else:
            print("Save the file to see the page change; Ctrl-C ends it.", flush=True)
        with tempfile.TemporaryDirectory(prefix="gradscribe") as folder:
            if browser:
                show(page.address, folder)
            page.serve()
    except KeyboardInterrupt:
        pass
    finally:
        page.close()
        signal.signal(signal.SIGTERM, before)


def end_with_input(page: Page) -> None:
    """Stop a page when standard input ends."""
    sys.stdin.read()
    page.server.shutdown()


def show(address: str, folder: str) -> None:
    """Open the address in a browser, by a file that only its owner reads: arguments of programs are seen by all."""
    file = os.path.join(folder, "live.html")            # the folder has mode 700
    with open(file, "w", encoding="utf-8") as out:
        out.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">live</a>')
    webbrowser.open(f"file://{file}")
