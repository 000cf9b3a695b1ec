"""Stand-ins on loopback for notification services: HTTP and HTTPS (also behind fixed host names), and SMTP.

The hosts of Slack and Discord are fixed in apprise. A process reaches their stand-in through the variables of
:attr:`StandIn.environment`: the server is also a proxy that ends TLS itself, with its own certificate.
"""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOSTS = ("hooks.slack.com", "discord.com", "teams.example.invalid", "localhost")


@frozen(kw_only=True)
class Received:
    """A request that a stand-in received; *host* is the one that the client meant."""

    host: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@define(eq=False)
class StandIn:
    """A service. It answers with *statuses*, one for each request and the last one from then on.

    With *hangs* it reads the request and sends one byte of its answer a second, for that many seconds.
    """

    folder: Path
    statuses: list[int] = field(factory=lambda: [200])
    hangs: float = 0
    received: list[Received] = field(factory=list[Received])
    ended: threading.Event = field(factory=threading.Event)
    port: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a process sends all HTTPS requests here, and trusts the certificate."""
        return {
            "HTTPS_PROXY": f"http://127.0.0.1:{self.port}",
            "REQUESTS_CA_BUNDLE": str(self.folder / "stand-in.pem"),
            "NO_PROXY": "",
        }

    @property
    def json_url(self) -> str:
        """An apprise URL of this service, with secrets."""
        return f"json://user:hunter2-hunter2@127.0.0.1:{self.port}/secret-token"

    def answer(self, request: BaseHTTPRequestHandler, host: str) -> None:
        """Record a request, and answer it."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.received.append(
            Received(host=host, path=request.path, headers=dict(request.headers.items()), body=body)
        )
        status = self.statuses[min(len(self.received), len(self.statuses)) - 1]
        if self.hangs:
            self._drip(request)
            return
        request.send_response(status)
        # Discord and others say when to try again. Here that is longer than anybody waits.
        request.send_header("Retry-After", "600")
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"ok")

    def _drip(self, request: BaseHTTPRequestHandler) -> None:
        """Send a byte of a header a second: no timeout of a socket ever fires."""
        end = time.monotonic() + self.hangs
        try:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while time.monotonic() < end and not self.ended.wait(1):
                request.wfile.write(b"x")
                request.wfile.flush()
        except OSError:
            pass  # the client is gone


@contextmanager
def stand_in(folder: Path) -> Generator[StandIn]:
    """Run a stand-in; its certificate is in *folder*."""
    service = StandIn(folder)
    context = _certificate(folder / "stand-in.pem")

    class Handler(BaseHTTPRequestHandler):
        host = "127.0.0.1"

        def do_POST(self) -> None:
            service.answer(self, self.host)

        def do_CONNECT(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.flush()
            self.host = self.path.partition(":")[0]
            with context.wrap_socket(self.connection, server_side=True) as encrypted:
                self.rfile, self.wfile = encrypted.makefile("rb"), encrypted.makefile("wb")
                self.handle_one_request()
                self.rfile.close()
                self.wfile.close()
            # What the base class flushes and closes after this method.
            self.rfile, self.wfile = BytesIO(), BytesIO()
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.port = server.server_port
    with _serving(server):
        yield service
        service.ended.set()


@define(eq=False)
class MailServer:
    """An SMTP server that takes every message, from anybody who logs in."""

    messages: list[Message] = field(factory=list[Message])
    recipients: list[str] = field(factory=list[str])
    logins: list[str] = field(factory=list[str])
    port: int = 0

    @property
    def url(self) -> str:
        """An apprise URL of this server, with a password."""
        return (
            f"mailto://robot:hunter2-hunter2@127.0.0.1:{self.port}/"
            "?from=robot@example.invalid&to=ann@example.invalid&mode=insecure"
        )


@contextmanager
def mail_server() -> Generator[MailServer]:
    """Run a mail server (RFC 5321, as far as a client that sends one message needs it)."""
    mail = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 stand-in")
            while line := self.rfile.readline().decode().strip():
                verb = line.split()[0].upper()
                match verb:
                    case "EHLO":
                        self.say("250-stand-in", "250 AUTH PLAIN")
                    case "AUTH":
                        mail.logins.append(base64.b64decode(line.split()[-1]).decode())
                        self.say("235 welcome")
                    case "RCPT":
                        mail.recipients.append(line)
                        self.say("250 fine")
                    case "DATA":
                        self.say("354 go on")
                        lines = iter(self.rfile.readline, b".\r\n")
                        mail.messages.append(message_from_bytes(b"".join(lines)))
                        self.say("250 taken")
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("250 fine")

        def say(self, *lines: str) -> None:
            self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    mail.port = server.server_address[1]
    with _serving(server):
        yield mail


@contextmanager
def _serving(server: socketserver.BaseServer) -> Generator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(path: Path, hosts: Sequence[str] = HOSTS) -> ssl.SSLContext:
    """Write a self-signed certificate and its key to *path*; return a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
