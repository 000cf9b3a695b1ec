"""What the agent's process and its commands get of the user's credentials: nothing, the proxy has them."""

from __future__ import annotations

import asyncio
import http.client
import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

import pytest

from gsd_core import Outage
from gsd_plugins.claude.cli import allowed_variables, without_cloud_secrets
from gsd_plugins.claude.proxy import PATHS, Access, proxy_to
from gsd_plugins.rehearsal.api import ApiRequest, Cut, Failure, MessagesApi, Reply
from tests.claude.harness import Harness, by_turn, says, uses
from tests.claude.test_environment import PRINT_ENVIRONMENTS

KEYS = {
    "ANTHROPIC_API_KEY": ("x-api-key", "hush-key", "hush-key"),
    "ANTHROPIC_AUTH_TOKEN": ("authorization", "hush-token", "Bearer hush-token"),
    "CLAUDE_CODE_OAUTH_TOKEN": ("authorization", "sk-ant-oat01-hush", "Bearer sk-ant-oat01-hush"),
    "ANTHROPIC_CUSTOM_HEADERS": ("x-gateway", "X-Gateway: hush-header", "hush-header"),
}


@pytest.mark.parametrize("name", KEYS)
def test_credentials_reach_the_api_and_no_command(harness: Harness, name: str) -> None:
    header, value, sent = KEYS[name]
    script = by_turn(uses("Bash", command=PRINT_ENVIRONMENTS), says("x"))
    others = {} if name == "ANTHROPIC_CUSTOM_HEADERS" else {"ANTHROPIC_API_KEY": ""}
    _, requests = harness.run(script, env={**others, name: value}, tools=("Bash",), writable=True)

    assert {request.headers[header] for request in requests} == {sent}
    assert "PATH=" in requests[-1].last
    assert "hush" not in requests[-1].last


CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": {"AWS_SECRET_ACCESS_KEY": "hush", "AWS_REGION": "eu-hush-1"},
    "CLAUDE_CODE_USE_VERTEX": {
        "GOOGLE_APPLICATION_CREDENTIALS": "/hush",
        "ANTHROPIC_VERTEX_PROJECT_ID": "hush",
    },
}


def test_credentials_of_a_cloud_do_not_reach_an_agent_that_does_not_use_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (pair for cloud in CLOUDS.values() for pair in cloud.items()):
        monkeypatch.setenv(name, value)
    script = by_turn(uses("Bash", command=PRINT_ENVIRONMENTS), says("x"))
    _, requests = harness.run(script, tools=("Bash",), writable=True)

    assert "hush" not in requests[-1].last


@pytest.mark.parametrize("cloud", CLOUDS)
def test_credentials_of_the_chosen_cloud_reach_the_agent_and_no_command(harness: Harness, cloud: str) -> None:
    # A cloud has another API, which nothing here plays: the agent gets its variables, but does not use it.
    variables = {cloud: "1", "PATH": "/usr/bin:/bin", **CLOUDS[cloud], "ANTHROPIC_MODEL": "m"}
    allowed = allowed_variables({**variables, "DATABASE": "hush"})
    prefix = without_cloud_secrets(allowed, ())
    script = by_turn(uses("Bash", command="env; echo 'a  b'"), says("x"))
    _, requests = harness.run(script, env={**CLOUDS[cloud], **prefix}, tools=("Bash",), writable=True)

    assert allowed == variables
    assert "hush" not in requests[-1].last
    assert "a  b" in requests[-1].last


def through_proxy(
    ask: Callable[[str], object], script: Callable[[ApiRequest], Reply] = lambda request: says("hello")
) -> tuple[ApiRequest, ...]:
    """Have *ask* make requests to a proxy with the token ``right``; return those that arrive at the API."""

    async def run(url: str) -> None:
        access = Access(url=url, credentials=lambda _: {"x-api-key": "real"})
        async with proxy_to(access, "right") as proxy:
            await asyncio.to_thread(ask, proxy)

    with MessagesApi(script) as api:
        asyncio.run(run(api.url))
    return tuple(api.requests)


def post(url: str, headers: Mapping[str, str], method: str = "POST") -> tuple[int, bytes]:
    body = json.dumps({"model": "m", "stream": True, "messages": []}).encode()
    request = urllib.request.Request(url, body if method == "POST" else None, dict(headers), method=method)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_only_the_token_of_the_call_opens_the_proxy() -> None:
    found: list[int] = []
    wrong: tuple[dict[str, str], ...] = (
        {},
        {"x-api-key": "wrong"},
        {"authorization": "Bearer real"},
        {"x-api-key": "ri\xe9ht"},
    )
    right = ({"x-api-key": "right"}, {"Authorization": "Bearer right"})

    def ask(url: str) -> None:
        found.extend(post(url + PATHS[0], headers)[0] for headers in wrong)
        found.extend(post(url + PATHS[0] + "?beta=true", headers)[0] for headers in right)

    requests = through_proxy(ask)

    assert found == [401] * 4 + [200] * 2
    assert [request.headers["x-api-key"] for request in requests] == ["real"] * 2
    assert "right" not in str(requests)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/organizations/api_keys"),
        ("POST", "/v1/messages/../files"),
        ("POST", "//elsewhere.example/v1/messages"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/files"),
        ("DELETE", "/v1/messages"),
    ],
)
def test_other_requests_are_not_forwarded(method: str, path: str) -> None:
    statuses: list[int] = []
    requests = through_proxy(lambda url: statuses.append(post(url + path, {"x-api-key": "right"}, method)[0]))

    assert statuses == [404]
    assert requests == ()


def test_the_proxy_ends_with_the_call() -> None:
    addresses: list[str] = []
    through_proxy(addresses.append)

    with pytest.raises(urllib.error.URLError, match="refused"):
        post(addresses[0] + PATHS[0], {"x-api-key": "right"})


def test_an_answer_is_passed_on_while_it_arrives() -> None:
    go_on = threading.Event()

    class Slow(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"one ")
            assert go_on.wait(10)
            self.wfile.write(b"two")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    parts: list[bytes] = []

    def ask(url: str) -> None:
        request = urllib.request.Request(url + PATHS[0], b"{}", {"x-api-key": "right"})
        with urllib.request.urlopen(request, timeout=10) as response:
            parts.append(response.read(4))
            go_on.set()
            parts.append(response.read())

    async def run() -> None:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        async with proxy_to(Access(url=url, credentials=lambda _: {}), "right") as proxy:
            await asyncio.to_thread(ask, proxy)

    asyncio.run(run())
    server.shutdown()
    server.server_close()
    assert parts == [b"one ", b"two"]


def test_rejected_credentials_are_renewed_once() -> None:
    def script(request: ApiRequest) -> Reply:
        is_new = request.headers["authorization"] == "Bearer new"
        return says("x") if is_new else Failure(401, "authentication_error", "expired")

    async def run(url: str) -> list[int]:
        access = Access(
            url=url, credentials=lambda renewed: {"authorization": f"Bearer {'new' if renewed else 'old'}"}
        )
        async with proxy_to(access, "right") as proxy:
            return [(await asyncio.to_thread(post, proxy + PATHS[0], {"x-api-key": "right"}))[0]]

    with MessagesApi(script) as api:
        assert asyncio.run(run(api.url)) == [200]
    assert len(api.requests) == 2


def test_an_api_that_cannot_be_reached_is_an_outage(harness: Harness) -> None:
    # Nothing listens on the discard port.
    with pytest.raises(Outage, match=r"cannot reach 127\.0\.0\.1:9"):
        harness.run(
            by_turn(), env={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "CLAUDE_CODE_MAX_RETRIES": "0"}
        )


def test_an_answer_that_breaks_off_does_not_look_complete() -> None:
    def ask(url: str) -> None:
        with pytest.raises(http.client.IncompleteRead):
            post(url + PATHS[0], {"x-api-key": "right"})

    assert len(through_proxy(ask, lambda _: Cut(says("half of it")))) == 1
