"""The option of the stand-ins to elect controllers as BMv2 does, beside BMv2 itself where it is installed."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from finsy.proto import U128, p4r

from gradbed.switch.p4runtime.status import StatusCode
from gradbed.switch.server import Bmv2Election
from tests.unit.p4runtime.client import TIMEOUT_S, Client, Stream, pipeline_of, serving
from tests.unit.p4runtime.fake_device import FakeDevice

BMV2 = os.environ.get("GRADBED_BMV2", "")
ROOT = Path(__file__).resolve().parents[4]

OK, BACKUP = StatusCode.OK, StatusCode.ALREADY_EXISTS
DENIED = grpc.StatusCode.PERMISSION_DENIED.name


@pytest.fixture(
    params=["gradbed", pytest.param("bmv2", marks=pytest.mark.skipif(not BMV2, reason="no GRADBED_BMV2"))]
)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    """Nobody is connected, and no pipeline is set."""
    if request.param == "gradbed":
        with serving({1: FakeDevice(1)}, election=Bmv2Election) as client:
            yield client
        return
    port, thrift = free_port(), free_port()
    command = [BMV2, "--no-p4", "--device-id", "1", "--thrift-port", str(thrift)]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        client = Client(f"127.0.0.1:{port}")
        grpc.channel_ready_future(client.channel).result(TIMEOUT_S)
        yield client
        client.close()
        process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def push(client: Client, election_id: int | None) -> str:
    """The code of the answer."""
    config = pipeline_of(ROOT / "p4src" / "router.p4")
    action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    request = p4r.SetForwardingPipelineConfigRequest(device_id=1, action=action, config=config)
    return answer(client.stub.SetForwardingPipelineConfig, request, election_id)


def write(client: Client, election_id: int | None) -> str:
    return answer(client.stub.Write, p4r.WriteRequest(device_id=1), election_id)


def answer(call, request, election_id: int | None) -> str:
    if election_id is not None:
        request.election_id.CopyFrom(U128.encode(election_id))
    try:
        call(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def wait_until(client: Client, election_id: int | None) -> None:
    """Until whoever left has been noticed."""
    end = time.monotonic() + TIMEOUT_S
    while write(client, election_id) != "OK":
        assert time.monotonic() < end
        time.sleep(0.02)


def connect(client: Client, election_id: int | None) -> Stream:
    stream = client.stream()
    stream.arbitrate(election_id)
    return stream


def test_without_a_controller_requests_need_no_election_id(client: Client) -> None:
    assert write(client, None) == "FAILED_PRECONDITION"
    assert push(client, 7) == DENIED
    assert push(client, None) == "OK"
    assert write(client, None) == "OK"
    assert [write(client, election_id) for election_id in (0, 7)] == [DENIED, DENIED]


def test_with_a_controller_only_its_id_counts(client: Client) -> None:
    assert push(client, None) == "OK"
    stream = connect(client, 5)
    assert stream.status() == (OK, 5)
    assert [write(client, election_id) for election_id in (None, 0, 4, 6, 5)] == [DENIED] * 4 + ["OK"]
    assert (push(client, None), push(client, 5)) == (DENIED, "OK")
    second = connect(client, 5)
    assert second.error()[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert stream.silent()


def test_the_ids_of_those_who_left_are_forgotten(client: Client) -> None:
    push(client, None)
    first, second = connect(client, 5), None
    assert first.status() == (OK, 5)
    second = connect(client, 4)
    assert second.status() == (BACKUP, 5)
    first.close()
    assert second.status() == (OK, 4)
    assert [write(client, election_id) for election_id in (None, 5, 4)] == [DENIED, DENIED, "OK"]
    second.close()
    wait_until(client, None)
    assert [write(client, election_id) for election_id in (4, 5)] == [DENIED, DENIED]
    third = connect(client, 3)
    assert third.status() == (OK, 3)
    third.close()


def test_who_steps_down_makes_room(client: Client) -> None:
    push(client, None)
    first = connect(client, 5)
    assert first.status() == (OK, 5)
    second = connect(client, 4)
    assert second.status() == (BACKUP, 5)
    first.arbitrate(3)
    assert (first.status(), second.status()) == ((BACKUP, 4), (OK, 4))
    assert [write(client, election_id) for election_id in (None, 5, 3, 4)] == [DENIED, DENIED, DENIED, "OK"]
    first.arbitrate(9)
    assert (first.status(), second.status()) == ((OK, 9), (BACKUP, 9))
    assert [write(client, election_id) for election_id in (4, 9)] == [DENIED, "OK"]
    first.arbitrate(11)
    assert first.status() == (OK, 11)


def test_no_election_id_is_the_id_0(client: Client) -> None:
    push(client, None)
    stream = connect(client, None)
    assert stream.status() == (OK, 0)
    assert [write(client, election_id) for election_id in (None, 0, 1)] == ["OK", "OK", DENIED]
    second = connect(client, 0)
    assert second.error()[0] == grpc.StatusCode.INVALID_ARGUMENT
