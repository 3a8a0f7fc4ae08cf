"""What other accounts of the machine can do to what listens on loopback, and to temporary folders: nothing.

Each attack is made by a process with another user id, and works where the protection is left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gradbed.common.errors import UserError
from gradbed.common.resources import LOCK, sweep
from gradbed.common.store import stored
from gradbed.controller.rest.interface import create_app
from gradbed.controller.rest.server import RestServer, listening_socket
from gradbed.experiments.study.running.distributed import LOCAL
from gradbed.switch.server import P4RuntimeServer
from tests.command import ROOT
from tests.emulation.prompt import Prompt
from tests.emulation.sandboxed import in_sandbox
from tests.listening import listening
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.unit.controller.rest.test_rest import controller, southbound
from tests.unit.p4runtime.client import Client
from tests.unit.p4runtime.fake_device import FakeDevice, FakeProgram

pytestmark = [pytest.mark.thorough, pytest.mark.root]
__all__ = ["southbound"]  # a fixture

NOBODY_UID = 65534
"""Of no account in particular; all attacks are made with it."""

CLUSTER = """
import sys
if __name__ == "__main__":
    from gradbed.experiments.study.running.distributed import dask_client
    with {cluster}:
        print("ready", flush=True)
        sys.stdin.read()
"""
UNPROTECTED = """
import sys
if __name__ == "__main__":
    from distributed import LocalCluster
    with LocalCluster(1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None):
        print("ready", flush=True)
        sys.stdin.read()
"""

RUN_ON_DASK = """
import asyncio, json, os, sys
from distributed import Security
from distributed.core import connect, send_recv
from distributed.protocol import pickle

uid, *ports = map(int, sys.argv[1:])
own = Security.temporary().get_connection_args("client")
os.setgroups([]), os.setgid(uid), os.setuid(uid)
function = pickle.dumps(os.geteuid)

async def run_task(port, scheme, operation, options):
    try:
        comm = await connect(f"{scheme}://127.0.0.1:{port}", timeout=5, **options)
        answer = await send_recv(comm, op=operation, function=function)
        return answer["result"] if answer.get("status") == "OK" else None
    except Exception:
        return None

async def attempts(port, scheme, **options):
    # On a worker, or on a scheduler.
    both = (asyncio.wait_for(run_task(port, scheme, each, options), 15) for each in ("run", "run_function"))
    found = await asyncio.gather(*both, return_exceptions=True)
    return next((each for each in found if isinstance(each, int)), None)

async def asks(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /info HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    try:
        return (await asyncio.wait_for(reader.read(5), 5)) == b"HTTP/"
    except (OSError, asyncio.TimeoutError):
        return False

async def main():
    found = await asyncio.gather(*(
        asyncio.gather(attempts(port, "tcp"), attempts(port, "tls", **own), asks(port)) for port in ports
    ))
    print(json.dumps(found), flush=True)
    os._exit(0)

asyncio.run(main())
"""


@contextlib.contextmanager
def cluster(script: str, folder: Path) -> Iterator[set[int]]:
    """The ports that a program which starts a Dask cluster listens at."""
    program = folder / "cluster.py"
    program.write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(program)], env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield {each.port for each in listening(process.pid)}
        finally:
            process.communicate()


def attack_dask(ports: set[int]) -> list[list[object]]:
    """For each port: what another account's function returned there, over TCP and over TLS with a certificate of its
    own (None: it did not run), and whether HTTP is answered."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN_ON_DASK, str(NOBODY_UID), *map(str, ports)],
        capture_output=True, text=True, cwd="/", timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found: list[list[object]] = json.loads(ended.stdout)
    return found


def test_another_account_runs_nothing_on_the_workers_of_scheduler_local(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with cluster(CLUSTER.format(cluster=f"dask_client({LOCAL!r})"), tmp_path) as ports:
        assert len(ports) >= 2  # the scheduler, and what each worker needs
        assert attack_dask(ports) == [[None, None, False]] * len(ports)


def test_the_attack_on_dask_works_without_the_protection(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with cluster(UNPROTECTED, tmp_path) as ports:
        found = attack_dask(ports)
    assert {over_tcp for over_tcp, _, _ in found if over_tcp is not None} == {os.geteuid()}
    assert any(answers_http for _, _, answers_http in found)


def as_nobody(script: str, *arguments: object) -> str:
    """What a Python program prints that calls `become()`, which makes it another account's, when it has loaded."""
    become = (
        f"import os, sys\ndef become():\n    os.setgroups([]), os.setgid({NOBODY_UID}), os.setuid({NOBODY_UID})\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", become + script, *map(str, arguments)],
        capture_output=True, text=True, cwd="/", timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


ASK_REST = """
import http.client
become()
for method, path in (("GET", "/jobs"), ("GET", "/docs"), ("DELETE", "/systems/aggregation/jobs/1")):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
    connection.request(method, path)
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
"""

GO_AT_ONCE = """
import socket
become()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
body = b'{"a": "e1", "b": "a1", "up": false}'
head = ["POST /links HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
connection.sendall("\\r\\n".join([*head, "", ""]).encode() + body)
connection.close()
"""

REFUSED = (
    f"refused to the account with user id {NOBODY_UID}: only the account that started this, and root, may use it"
)


def test_another_account_is_refused_by_rest(southbound: FakeSouthbound) -> None:
    listener = listening_socket("127.0.0.1:0")
    port = listener.getsockname()[1]
    control = controller(southbound)
    server = RestServer(create_app(control), [listener])
    server.start()
    try:
        answers = as_nobody(ASK_REST, port).splitlines()
        # What it closes is root's for the kernel while the controller reads from it.
        as_nobody(GO_AT_ONCE, port)
        own = httpx.get(f"http://127.0.0.1:{port}/jobs", trust_env=False)
    finally:
        server.stop()
    assert [(each[:3], REFUSED in each) for each in answers] == [("403", True)] * 3
    assert own.status_code == 200
    assert control.links_down() == set()


ASK_P4RUNTIME = """
import grpc
from finsy.proto import p4r, p4r_grpc
become()
stub = p4r_grpc.P4RuntimeStub(grpc.insecure_channel(sys.argv[1]))
def stream():
    yield p4r.StreamMessageRequest(arbitration=p4r.MasterArbitrationUpdate(device_id=1))
for call in (
    lambda: stub.Capabilities(p4r.CapabilitiesRequest(), timeout=20),
    lambda: stub.Write(p4r.WriteRequest(device_id=1), timeout=20),
    lambda: next(iter(stub.Read(p4r.ReadRequest(device_id=1), timeout=20))),
    lambda: next(iter(stub.StreamChannel(stream(), timeout=20))),
):
    try:
        print("OK", call())
    except grpc.RpcError as error:
        print(error.code().name, error.details())
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
@in_sandbox  # a process of its own: gRPC's thread goes on after its server
def test_another_account_is_refused_by_p4runtime(host: str) -> None:
    server = P4RuntimeServer({1: FakeDevice(1)}, [f"{host}:0"], build=FakeProgram)
    server.start()
    address = f"127.0.0.1:{server.ports[0]}"
    client = Client(address)
    try:
        answers = as_nobody(ASK_P4RUNTIME, address).splitlines()
        client.become_primary()
    finally:
        client.close()
        server.stop()
    assert [(each.split()[0], REFUSED in each) for each in answers] == [("PERMISSION_DENIED", True)] * 4


OPEN_FILES = """
become()
for name in sys.argv[1:]:
    try:
        print(name, os.listdir(name) if os.path.isdir(name) else open(name).read())
    except OSError as error:
        print(error.strerror)
"""


def test_another_account_sees_nothing_of_a_network_that_is_up(tmp_path: Path) -> None:
    """Its REST interface, in the sandbox, has a socket from outside; its P4Runtime socket lies in a folder."""
    up = Prompt("--topology", "star:2", folder=tmp_path)
    try:
        port = int(up.wait_for("/docs").rpartition(":")[2].split("/")[0])
        up.wait_for("P4Runtime: unix:")
        folder = Path(up.wait_for("/p4runtime.sock"))
        assert (folder / "switches.json").exists()
        own = httpx.get(f"http://127.0.0.1:{port}/jobs", trust_env=False)
        answers = as_nobody(ASK_REST, port).splitlines()
        seen = as_nobody(OPEN_FILES, folder, folder / "p4runtime.sock", folder / "switches.json").splitlines()
    finally:
        up.close()
    assert own.status_code == 200
    assert [(each[:3], REFUSED in each) for each in answers] == [("403", True)] * 3
    assert seen == ["Permission denied"] * 3


FORKSERVER = """
import sys
from gradbed.switch.stf.isolated import each_in_own_process
for _ in each_in_own_process(abs, [-1], jobs=1, time_limit_s=60, imports=["json"]):
    pass
print("ready", flush=True)
sys.stdin.read()
"""


def test_forkservers_listen_where_their_account_alone_gets_to(tmp_path: Path) -> None:
    """A name in the abstract namespace, which Python took for a while, can be called by every account, and whoever
    calls runs code (CVE-2022-42919)."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", FORKSERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            names = [
                line.split()[7] for line in Path("/proc/net/unix").read_text().splitlines() if "listener-" in line
            ]
        finally:
            process.communicate()
    assert any(name.startswith(str(tmp_path)) for name in names), names
    assert not any(name.startswith("@") for name in names), names


def test_a_folder_of_another_account_is_not_swept(tmp_path: Path) -> None:
    """Whose lock is a link to a file of root's: a sweep neither opens that nor removes the folder."""
    precious = tmp_path / "precious"
    precious.touch()
    place = tmp_path / "tmp"
    theirs = place / "gradbed-theirs"
    theirs.mkdir(parents=True)
    (theirs / LOCK).symlink_to(precious)
    os.chown(theirs, NOBODY_UID, NOBODY_UID)
    own = place / "gradbed-own"
    own.mkdir()
    (own / LOCK).touch()
    sweep(place)
    assert theirs.exists() and not own.exists()


@pytest.mark.parametrize(("owner", "mode"), [(NOBODY_UID, 0o700), (0, 0o777), (0, 0o1777)])
def test_a_cache_that_others_can_write_to_is_not_used(
    owner: int, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "thing").touch()
    os.chown(cache, owner, owner)
    cache.chmod(mode)
    monkeypatch.setenv("GRADBED_CACHE", str(cache))
    with pytest.raises(UserError, match=r"other accounts can write to the cache .*: set GRADBED_CACHE"):
        stored(lambda *_: None, cache / "thing")
    os.chown(cache, 0, 0)
    cache.chmod(0o755)
    stored(lambda *_: None, cache / "thing")
