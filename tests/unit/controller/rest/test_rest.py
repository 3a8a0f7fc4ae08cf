from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gradbed.common.errors import UserError
from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.planning.plan import Plan
from gradbed.controller.rest.client import ControllerClient, unix_path
from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, inherited_socket, listening_socket
from gradbed.controller.southbound.interface import CounterCell, SouthboundError, SouthboundTimeout
from gradbed.topo.generators import fat_tree
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel
from tests.unit.controller.fake_southbound import FakeSouthbound

TOPOLOGY = fat_tree(4, LinkModel(rate_bps=10_000_000))
PATIENCE_S = 60.0
SERVICE = "gradbed.controller.systems.aggregation.service:AggregationService"
JOBS = "/systems/aggregation/jobs"


@pytest.fixture
def southbound() -> FakeSouthbound:
    return FakeSouthbound([switch.name for switch in TOPOLOGY.switches])


def controller(southbound: FakeSouthbound) -> Controller:
    services = load_services([ServiceConfig(name="aggregation", service=SERVICE)])
    return Controller(TOPOLOGY, southbound, services, dict.fromkeys(southbound.switches, "aggregation"))


@contextlib.contextmanager
def served(listener: socket.socket, southbound: FakeSouthbound) -> Iterator[None]:
    """The interface on a real socket."""
    server = RestServer(create_app(controller(southbound)), [listener])
    server.start()
    yield
    server.stop()


@pytest.fixture
def rest(southbound: FakeSouthbound, tmp_path: Path) -> Iterator[httpx.Client]:
    path = str(tmp_path / "rest.sock")
    transport = httpx.HTTPTransport(uds=path)
    with (
        served(listening_socket(path), southbound),
        httpx.Client(transport=transport, base_url="http://controller", timeout=PATIENCE_S) as client,
    ):
        yield client


def test_the_topology_is_the_one_that_all_share(rest: httpx.Client) -> None:
    assert Topology.model_validate(rest.get("/topology").json()) == TOPOLOGY


def test_switches(rest: httpx.Client) -> None:
    answer = rest.get("/switches").json()
    assert answer[0] == {
        "name": "c1",
        "number": 1,
        "connected": True,
        "pipeline": "aggregation 1",
        "error": None,
    }
    assert answer[-1] == {
        "name": "e8",
        "number": 20,
        "connected": False,
        "pipeline": None,
        "error": "no answer",
    }


def test_counters_show_what_is_not_zero(rest: httpx.Client, southbound: FakeSouthbound) -> None:
    southbound.cells = {
        "gradient_in": [CounterCell(0, 0, 0), CounterCell(3, 5, 700)],
        "events": [CounterCell(1, 4, 0)],
        "idle": [CounterCell(0, 0, 0)],
    }
    assert rest.get("/switches/e1/counters").json() == {
        "gradient_in": [{"index": 3, "packets": 5, "bytes": 700}],
        "events": [{"index": 1, "packets": 4, "bytes": 0}],
        "idle": [],
    }


@pytest.mark.parametrize("found", [[], ["+ ipv4_routes: ..."], None])
def test_what_a_switch_holds_otherwise(
    rest: httpx.Client, southbound: FakeSouthbound, found: list[str] | None
) -> None:
    southbound.different = found
    assert rest.get("/switches/e1/differences").json() == found
    assert rest.get("/switches/x/differences").status_code == 404


def test_a_job_from_beginning_to_end(rest: httpx.Client) -> None:
    answer = rest.post(JOBS, json={"workers": ["h2", "h5", "h9"], "server": "h1"})
    assert answer.status_code == 201
    tor = TOPOLOGY.switch("e1").number
    job = {
        "job": 1,
        "designations": [[{"switch_number": tor, "fan_in": 3, "next_switch": 0, "next_fan_in": 0}]] * 3,
        "designated_switches": [tor],
        "slot_policy": "dynamic",
        "slots": 4096,
        "acknowledgement": "multicast",
        "multicast": [{"ip": "239.66.0.16", "mac": "01:00:5e:42:00:10"}],
    }
    assert answer.json() == job
    hosts = {"workers": ["h2", "h5", "h9"], "server": "h1"}
    slots = {"e1": {"first_slot": 0, "slots": 4096}}
    listed = {**job, **hosts, "slot_ranges": slots}
    assert rest.get(JOBS).json() == [listed]
    assert rest.get("/jobs").json() == [{"system": "aggregation", **listed}]
    plan = Plan.from_json(rest.get("/plan").content)
    assert plan["e1"].groups[0].id == 16
    assert "multicast group 16 -> ports" in rest.get("/plan.txt").text
    assert rest.delete(f"{JOBS}/1").status_code == 204
    assert rest.get("/jobs").json() == []


def test_a_job_on_switches_that_the_controller_chooses(rest: httpx.Client) -> None:
    workers = ["h3", "h4", "h5", "h6"]
    body = {"workers": workers, "server": "h1", "placement": "greedy", "programmable": 2}
    answer = rest.post(JOBS, json=body).json()
    last = TOPOLOGY.switch("e1").number
    chosen = [number for number in answer["designated_switches"] if number != last]
    assert 1 <= len(chosen) <= 2
    assert {label["switch_number"] for labels in answer["designations"] for label in labels} <= {*chosen, last}
    names = [switch.name for switch in TOPOLOGY.switches if switch.number in chosen]
    again = rest.post(JOBS, json={**body, "placement": "lp", "switches": names, "programmable": None}).json()
    assert set(again["designated_switches"]) == {*chosen, last}


def test_a_job_without_aggregation(rest: httpx.Client) -> None:
    body = {"workers": ["h2"], "server": "h1", "placement": "none"}
    answer = rest.post(JOBS, json=body).json()
    assert (answer["acknowledgement"], answer["designated_switches"]) == ("unicast", [])
    assert (answer["designations"], answer["slots"]) == ([[]], None)
    assert answer["multicast"] == []


SMALL = {"workers": ["h2"], "server": "h1"}

ERRORS = [
    ("GET", "/switches/x1/counters", None, 404, "there is no switch 'x1'"),
    ("GET", "/switches/h1/counters", None, 404, "there is no switch 'h1'"),
    ("GET", "/switches/x1/registers/r", None, 404, "there is no switch 'x1'"),
    ("GET", "/systems/doors/jobs", None, 404, "this controller serves no system 'doors'; it serves aggregation"),
    ("DELETE", "/systems/doors/jobs/1", None, 404, "serves no system 'doors'"),
    ("GET", "/switches/e1/registers/r", None, 404, "e1 has no register 'r'"),
    ("POST", "/links", {"a": "e1", "b": "a1"}, 422, "up: is missing"),
    ("POST", "/links", {"a": "e1", "b": "a1", "up": 0}, 422, "up: must be true or false"),
    ("POST", JOBS, {"server": "h1", "workers": ["h2"], "programmable": "2"}, 422, "programmable: must be a whole"),
    ("POST", "/links", {"a": "e1", "b": "e2", "up": False}, 400, "no link between 'e1' and 'e2'"),
    ("GET", "/nothing", None, 404, "Not Found"),
    ("PUT", JOBS, None, 405, "Method Not Allowed"),
    ("DELETE", f"{JOBS}/3", None, 404, "there is no job 3"),
    ("DELETE", f"{JOBS}/x", None, 422, "job: must be a whole number"),
    ("POST", JOBS, {"server": "h1"}, 422, "workers: is missing"),
    ("POST", JOBS, {"server": "h1", "workers": []}, 422, "workers: must have at least 1 value"),
    ("POST", JOBS, {"server": "h1", "workers": ["h2"], "speed": 1}, 422, "speed: is not known here"),
    ("POST", JOBS, {"server": "h1", "workers": ["h99"]}, 400, "no host 'h99'"),
    ("POST", JOBS, {"server": "h1", "workers": ["h1"]}, 400, "h1 cannot be both server and worker"),
    ("POST", JOBS, {**SMALL, "placement": "best"}, 422, "must be one of 'shared-path', 'own-tor', 'none'"),
    ("POST", JOBS, {**SMALL, "placement": "explicit"}, 400, "placement explicit needs the names of switches"),
    ("POST", JOBS, {**SMALL, "placement": "explicit", "switches": []}, 400, "explicit needs the names of switches"),
    ("POST", JOBS, {**SMALL, "switches": ["e1"]}, 400, "switches are named, but the default placement"),
    ("POST", JOBS, {**SMALL, "placement": "greedy"}, 400, "placement greedy needs to know how many"),
    ("POST", JOBS, {**SMALL, "placement": "greedy", "programmable": -1}, 400, "must be 0 to 20"),
    ("POST", JOBS, {**SMALL, "placement": "greedy", "programmable": 21}, 400, "must be 0 to 20"),
    ("POST", JOBS, {**SMALL, "placement": "server-tor", "switch_capacity_mbps": 0}, 400, "must be a positive"),
    ("POST", JOBS, {**SMALL, "placement": "server-tor", "demand_mbps": 11}, 400, "cannot be met"),
    ("POST", JOBS, {**SMALL, "placement": "lp", "switches": ["x1"]}, 400, "no switch 'x1'"),
    ("POST", JOBS, {**SMALL, "programmable": 2}, 400, "goes with a placement that chooses them: greedy"),
    ("POST", JOBS, {**SMALL, "switch_capacity_mbps": 2}, 400, "does not use a capacity of switches"),
    ("POST", JOBS, {**SMALL, "slots": 4}, 400, "slot policy dynamic all jobs share all slots"),
    ("POST", JOBS, {**SMALL, "slots": 0}, 422, "slots: must be at least 1"),
    ("POST", JOBS, {**SMALL, "slots": 8192, "slot_policy": "static"}, 400, "1 to 4096 slots of a switch"),
    (
        "POST",
        JOBS,
        {"server": "h1", "workers": [f"h{i}" for i in range(2, 22)]},
        400,
        "20 workers and a server need 21 hosts, the topology has 16",
    ),
]


def test_errors_are_one_line(rest: httpx.Client) -> None:
    for method, path, body, status, detail in ERRORS:
        answer = rest.request(method, path, json=body)
        assert answer.status_code == status
        assert list(answer.json()) == ["detail"]
        assert detail in answer.json()["detail"]
        assert "\n" not in answer.json()["detail"]


@pytest.mark.parametrize(("path", "allowed"), [("/links", "GET, POST"), ("/plan", "GET"), (f"{JOBS}/1", "DELETE")])
def test_a_method_that_a_path_has_not(rest: httpx.Client, path: str, allowed: str) -> None:
    answer = rest.put(path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)


def test_a_switch_that_is_away_is_503(rest: httpx.Client, southbound: FakeSouthbound) -> None:
    southbound.failure = SouthboundError("e1 is not connected:\nno answer")
    answer = rest.get("/switches/e1/counters")
    assert (answer.status_code, answer.json()) == (503, {"detail": "e1 is not connected: no answer"})
    assert rest.post(JOBS, json={"workers": ["h2"], "server": "h1"}).status_code == 503


def test_a_switch_that_is_late_is_504(rest: httpx.Client, southbound: FakeSouthbound) -> None:
    southbound.failure = SouthboundTimeout("e1: no answer within 30 s")
    for answer in (rest.get("/switches/e1/counters"), rest.post(JOBS, json=SMALL)):
        assert (answer.status_code, answer.json()) == (504, {"detail": "e1: no answer within 30 s"})


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1"])
def test_hosts_that_a_web_page_can_name_are_refused_over_tcp(address: str, southbound: FakeSouthbound) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)
    called = f"[{address}]" if ":" in address else address
    url = f"http://{called}:{listener.getsockname()[1]}/jobs"
    known = [called, f"{called}:80", "localhost", "LocalHost:8080", "127.0.0.1", "[::1]:8080", socket.gethostname()]
    strange = ["gradbed.example", "gradbed.example:8080", "127.0.0.1.gradbed.example", "127.0.0.3", "[::2]", ""]
    with served(listener, southbound), httpx.Client(timeout=PATIENCE_S, trust_env=False) as client:
        statuses = {host: client.get(url, headers={"Host": host}).status_code for host in known + strange}
        assert statuses == {**dict.fromkeys(known, 200), **dict.fromkeys(strange, 400)}
        refused = client.post(url, json=SMALL, headers={"Host": "gradbed.example"})
        assert (refused.status_code, list(refused.json())) == (400, ["detail"])
        assert (
            f"has to be one of localhost, 127.0.0.1, [::1], {socket.gethostname().lower()}"
            in refused.json()["detail"]
        )
    assert southbound.applied == []


BODY = b'{"a": "e1", "b": "a1", "up": false}'
JSON = "application/json"


@pytest.mark.commit_cases(4)
@pytest.mark.parametrize(
    ("headers", "status", "detail"),
    [
        ({}, 422, "send JSON, with Content-Type application/json"),
        # Those that a page of another site may send without asking (Fetch standard, CORS-safelisted request-header).
        *(
            ({"Content-Type": kind}, 422, "send JSON, with Content-Type application/json")
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")
        ),
        ({"Content-Type": JSON, "Origin": "http://gradbed.example"}, 403, "a page of another site"),
        ({"Content-Type": JSON, "Origin": "null"}, 403, "a page of another site"),
        ({"Content-Type": JSON, "Origin": "http://localhost:1"}, 403, "a page of another site"),
        ({"Content-Type": JSON, "Origin": "https://localhost:{port}"}, 403, "a page of another site"),
        ({"Content-Type": JSON, "Origin": "http://localhost:{port}"}, 200, None),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200, None),
    ],
)
def test_a_page_of_another_site_cannot_post(
    headers: dict[str, str], status: int, detail: str | None, southbound: FakeSouthbound
) -> None:
    """By raw bytes, so that no client adds a header; and before any framework looks at the body."""
    asked: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await PlainTextResponse("changed")(scope, receive, send)

    listener = listening_socket("127.0.0.1:0")
    port = listener.getsockname()[1]
    server = RestServer(app, [listener])
    server.start()
    lines = [f"{name}: {value.format(port=port)}" for name, value in headers.items()]
    for body in (
        ["Content-Length: 35", "", BODY.decode()],
        ["Transfer-Encoding: chunked", "", f"23\r\n{BODY.decode()}\r\n0\r\n\r\n"],
    ):
        request = "\r\n".join(["POST /links HTTP/1.1", f"Host: localhost:{port}", *lines, "Connection: close", *body])
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
            connection.sendall(request.encode())
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        head, _, content = answer.partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode())
        assert (json.loads(content)["detail"] if detail else content.decode()).startswith(detail or "changed")
    server.stop()
    assert asked == ([] if detail else ["/links"] * 2)


@pytest.fixture(params=["tcp", "unix", "unix prefix", "inherited"])
def client(request: pytest.FixtureRequest, tmp_path: Path, southbound: FakeSouthbound) -> Iterator[ControllerClient]:
    path = str(tmp_path / "rest.sock")
    if request.param == "tcp":
        listener = listening_socket("127.0.0.1:0")
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    elif request.param == "inherited":
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(path)
        listener, address = inherited_socket(os.dup(bound.fileno())), path
        bound.close()
    else:
        address = path if request.param == "unix" else f"unix:{path}"
        listener = listening_socket(address)
    with served(listener, southbound):
        yield ControllerClient(address, timeout_s=20)


def test_the_client_speaks_to_the_server(client: ControllerClient, southbound: FakeSouthbound) -> None:
    southbound.cells = {"gradient_in": [CounterCell(3, 5, 700)]}
    assert client.topology() == TOPOLOGY
    assert len(client.switches()) == 20
    assert client.counters("e1") == {"gradient_in": [{"index": 3, "packets": 5, "bytes": 700}]}
    job = client.add_job(
        "aggregation", {"workers": ["h2", "h5"], "server": "h1", "placement": "explicit", "switches": ["a1"]}
    )
    first, last = TOPOLOGY.switch("a1").number, TOPOLOGY.switch("e1").number
    assert (job["job"], job["designated_switches"]) == (1, [first, last])
    label = {"switch_number": first, "fan_in": 2, "next_switch": last, "next_fan_in": 2}
    assert job["designations"] == [[label], [label]]
    assert [(found["system"], found["job"]) for found in client.jobs()] == [("aggregation", 1)]
    assert [found["job"] for found in client.jobs("aggregation")] == [1]
    southbound.register_cells = {"slot_owner": [0, 7, 0, None]}
    assert client.registers("e1", "slot_owner") == {1: 7, 3: None}
    client.link("a1", "c1", up=False)
    assert [link for link in client.links() if not link["up"]] == [{"a": "a1", "b": "c1", "up": False}]
    client.link("c1", "a1", up=True)
    assert all(link["up"] for link in client.links())
    assert client.plan_text().startswith("c1: aggregation (p4)")
    client.delete_job("aggregation", 1)
    assert client.jobs() == []


def test_the_client_hands_on_the_controllers_line(client: ControllerClient, southbound: FakeSouthbound) -> None:
    with pytest.raises(UserError, match=r"^there is no job 4$"):
        client.delete_job("aggregation", 4)
    with pytest.raises(UserError, match="no host 'h99'"):
        client.add_job("aggregation", {"workers": ["h99"], "server": "h1"})
    with pytest.raises(UserError, match=r"^this controller serves no system 'doors'; it serves aggregation$"):
        client.add_job("doors", SMALL)
    with pytest.raises(UserError, match=r"no link between 'e1' and 'e2'$"):
        client.link("e1", "e2", up=False)
    with pytest.raises(UserError, match=r"^there is no switch 'b c'$"):
        client.counters("b c")
    southbound.failure = SouthboundError("e1 is not connected: gone")
    with pytest.raises(UserError, match=r"^e1 is not connected: gone$"):
        client.add_job("aggregation", SMALL)


def test_nobody_at_the_address(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"controller at .*none\.sock does not answer: .*No such file"):
        ControllerClient(str(tmp_path / "none.sock")).jobs()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UserError, match=r"does not answer: .*refused"):
        ControllerClient(f"127.0.0.1:{port}").jobs()
    with pytest.raises(UserError, match=r"controller at 127.0.0.1:99999 does not answer: "):
        ControllerClient("127.0.0.1:99999").jobs()


@pytest.mark.parametrize("address", ["", "8080", "localhost", "localhost:http", ":80"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(UserError, match="neither HOST:PORT nor the path of a unix socket"):
        unix_path(address)


def test_a_stale_unix_socket_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "rest.sock"
    listening_socket(str(path)).close()
    assert path.exists()
    with listening_socket(str(path)), pytest.raises(UserError, match=r"cannot listen at .*in use"):
        listening_socket(str(path))
    (tmp_path / "file").write_text("precious")
    with pytest.raises(UserError, match=r"cannot listen at .*in use"):
        listening_socket(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "precious"


def test_places_where_nobody_can_listen(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot listen at 127.0.0.1:99999"):
        listening_socket("127.0.0.1:99999")
    with pytest.raises(UserError, match=r"cannot listen at .*No such file"):
        listening_socket(str(tmp_path / "missing" / "rest.sock"))
    with pytest.raises(UserError, match=r"cannot listen at .*too long"):
        listening_socket(f"/{'x' * 200}")


def test_a_descriptor_that_is_no_stream_socket(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(UserError, match="is not a socket"):
        inherited_socket(os.dup(file.fileno()))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
        pytest.raises(UserError, match="is not a stream socket"),
    ):
        inherited_socket(os.dup(datagram.fileno()))
