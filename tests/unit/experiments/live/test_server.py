"""The page is for those who have the token, and nothing but time can be changed through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from gradbed.controller.rest.middleware import AccessCheck
from gradbed.experiments.live.recording import VERSION, Recording
from gradbed.experiments.live.server import Guard, Pages, create_app

TOKEN = "the-token-of-this-test"


class Shown:
    is_live = True
    generation = 0

    def __init__(self) -> None:
        self.recording = Recording()
        self.recording.add({"kind": "begin", "version": VERSION, "t_us": 0, "programs": {}})
        self.told: list[Mapping[str, Any]] = []

    def names(self) -> list[str]:
        return []

    def choose(self, number: int) -> None:
        raise AssertionError("there is nothing to choose from")

    def command(self, command: Mapping[str, Any]) -> None:
        self.told.append(command)


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
def client(shown: Shown) -> TestClient:
    app = AccessCheck(Guard(create_app(shown, Pages()), TOKEN))
    return TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)


PATHS = ["", "main.js", "vendor/cytoscape.esm.min.js", "stream"]
POSTS = {
    "control": {"command": "pause"},
    "watch": {"switch": "s1"},
    "layers": {"frame": "00" * 60},
    "trace": {"frame": "00" * 60, "switch": "s1", "port": 1},
    "choose/0": {},
}


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "%00", "töken", "..", "."])
def test_nothing_is_told_without_the_token(client: TestClient, shown: Shown, token: str) -> None:
    for path in PATHS:
        assert client.get(f"/{token}/{path}").status_code == 403, path
    for path, body in POSTS.items():
        assert client.post(f"/{token}/{path}", json=body).status_code == 403, path
        assert client.post(f"/{path}", json=body).status_code == 403, path
    assert shown.told == []


def test_other_names_for_this_machine_are_refused(client: TestClient, shown: Shown) -> None:
    """DNS rebinding: a page of another site has its own name resolve to 127.0.0.1."""
    for path in PATHS[:-1]:
        assert client.get(f"/{TOKEN}/{path}", headers={"Host": "evil.example"}).status_code == 400
    body = {"command": "pause"}
    assert client.post(f"/{TOKEN}/control", json=body, headers={"Host": "evil.example"}).status_code == 400
    assert shown.told == []


@pytest.mark.parametrize("path", [f"{TOKEN}/", f"{TOKEN}/main.js", f"{TOKEN}/no-such-file", "wrong/"])
def test_every_answer_has_the_policy(client: TestClient, path: str) -> None:
    headers = client.get(f"/{path}").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


def test_files_beside_the_page_are_out_of_reach(client: TestClient) -> None:
    for path in ("../server.py", "%2e%2e/server.py", "vendor/../../server.py", "..%2fserver.py"):
        assert client.get(f"/{TOKEN}/{path}").status_code in (403, 404), path


def test_an_address_without_its_slash_leads_to_the_page(client: TestClient) -> None:
    answer = client.get(f"/{TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/{TOKEN}/")
    assert "<title>gradbed</title>" in client.get(f"/{TOKEN}/").text


def test_controls_reach_the_network(client: TestClient, shown: Shown) -> None:
    for body in (
        {"command": "pause"},
        {"command": "step", "step_us": 100},
        {"command": "speed", "speed": 0.1},
        {"command": "speed", "speed": None},
        {"command": "run"},
    ):
        assert client.post(f"/{TOKEN}/control", json=body).status_code == 204
    assert [told["command"] for told in shown.told] == ["pause", "step", "speed", "speed", "run"]
    assert shown.told[1]["step_us"] == 100
    client.post(f"/{TOKEN}/watch", json={"switch": "s1", "link": None})
    assert shown.told[-1] == {"command": "watch", "switch": "s1", "link": None}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("control", {"command": "restart"}),
        ("control", {"command": "watch", "switch": "s1"}),
        ("control", {"command": "speed", "speed": 0}),
        ("control", {"command": "step", "step_us": -1}),
        ("control", {"command": "pause", "more": 1}),
        ("watch", {"link": -1}),
        ("layers", {"frame": "not hexadecimal"}),
        ("trace", {"frame": "00" * 60, "switch": "s1", "port": 512}),
    ],
)
def test_requests_that_make_no_sense_are_one_line(
    client: TestClient, shown: Shown, path: str, body: dict[str, Any]
) -> None:
    answer = client.post(f"/{TOKEN}/{path}", json=body)
    assert answer.status_code == 422
    assert "\n" not in answer.json()["detail"]
    assert shown.told == []


def test_a_trace_at_what_is_no_p4_switch_is_one_line(client: TestClient) -> None:
    answer = client.post(f"/{TOKEN}/trace", json=POSTS["trace"])
    assert (answer.status_code, answer.json()) == (400, {"detail": "s1 is no P4 switch of this network"})
