"""The scripted Messages API, called directly; elsewhere the CLI is its client."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest

from gsd_plugins.rehearsal.api import (
    ApiRequest,
    Blocks,
    Failure,
    MessagesApi,
    Reply,
    Text,
    ToolUseBlock,
    text_of,
)

HELLO = Blocks((Text("Hello"),))
REQUEST = {
    "model": "m",
    "system": [{"type": "text", "text": "S"}],
    "messages": [{"role": "user", "content": "hi"}],
}


def send(api: MessagesApi, method: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
    host, port = api.url.removeprefix("http://").split(":")
    connection = HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_message_is_one_json_body_without_streaming() -> None:
    reply = Blocks((Text("Hello"), ToolUseBlock("Bash", {"command": "ls"}, "toolu_1")))
    with MessagesApi(lambda request: reply) as api:
        status, body = send(api, "POST", "/v1/messages?beta=true", REQUEST)

    message = json.loads(body)
    assert (status, message["stop_reason"], message["model"]) == (200, "tool_use", "m")
    assert message["content"][1] == {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Bash",
        "input": {"command": "ls"},
    }


def test_a_streamed_message_is_a_series_of_events() -> None:
    reply = Blocks((Text("Hello"),), usage={"input_tokens": 3, "output_tokens": 2})
    with MessagesApi(lambda request: reply) as api:
        _, body = send(api, "POST", "/v1/messages", {**REQUEST, "stream": True})

    events = [
        json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")
    ]
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[4]["usage"] == {"input_tokens": 3, "output_tokens": 2}


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/other"), ("GET", "/v1/messages"), ("HEAD", "/")])
def test_other_paths_and_methods_are_not_found(method: str, path: str) -> None:
    with MessagesApi(lambda request: HELLO) as api:
        status, _ = send(api, method, path)

    assert status == 404
    assert not api.requests


def test_a_request_has_its_step_and_prompts() -> None:
    with MessagesApi(lambda request: HELLO) as api:
        send(api, "POST", "/v1/messages", REQUEST, **{"X-GSD-Step": "plan-03"})

    (request,) = api.requests
    assert (request.step, request.system, request.prompt, request.last, request.turn) == (
        "plan-03",
        "S",
        "hi",
        "hi",
        0,
    )
    assert request.size == len(json.dumps(REQUEST))


def test_a_failure_has_its_status_and_headers() -> None:
    with MessagesApi(lambda request: Failure(529, "overloaded_error", "Overloaded")) as api:
        status, body = send(api, "POST", "/v1/messages", REQUEST)

    assert (status, json.loads(body)["error"]["type"]) == (529, "overloaded_error")


def test_an_exception_in_a_script_is_an_invalid_request() -> None:
    def failing(request: ApiRequest) -> Reply:
        raise LookupError("no such turn")

    with MessagesApi(failing) as api:
        status, body = send(api, "POST", "/v1/messages", REQUEST)

    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")
    assert "no such turn" in body
    assert [str(error) for error in api.errors] == ["no such turn"]


def test_the_text_of_a_tool_result_is_found() -> None:
    content = [
        {"type": "tool_result", "content": [{"type": "text", "text": "a"}]},
        {"type": "text", "text": "b"},
    ]

    assert text_of(content) == "a\nb"
