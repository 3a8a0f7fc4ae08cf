"""simple_switch and simple_switch_grpc as processes, without interfaces."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import finsy as fy
import grpc
import pytest
from finsy.proto import p4r, p4r_grpc
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

from gradbed.switch.simple_switch.cli.client import Client
from gradbed.switch.simple_switch.cli.command import SimpleSwitchShell
from tests.unit.p4runtime.certificates import Authority
from tests.unit.p4runtime.client import INSERT
from tests.unit.p4runtime.client import Client as Controller
from tests.unit.simple_switch.programs import everything, program_json

PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: str, *arguments: str | Path, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Killed at the end, if it has not ended by then."""
    root = Path(__file__).resolve().parents[3]
    code = (
        f"import sys; sys.path[0] = {str(root)!r}; from gradbed.switch.simple_switch import {command} as main; "
        + ("sys.exit(main(sys.argv[1:]))")
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_it_serves(process: subprocess.Popen[str]) -> list[str]:
    """What it writes up to then."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if line.startswith("Server listening on "):
            return lines
    raise AssertionError(f"it ended: {lines} {process.communicate()}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_p4runtime_until_a_signal_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    arguments = ["--no-p4", "--device-id", "5", "--log-console", "--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    with running("simple_switch_grpc", *arguments, cwd=tmp_path) as process:
        lines = wait_until_it_serves(process)
        assert lines[-1] == f"Server listening on 127.0.0.1:{port}"
        assert any(line.startswith("[") and f"P4Runtime is served on 127.0.0.1:{port}" in line for line in lines)
        comm = Path(f"/proc/{process.pid}/comm").read_text().strip()
        assert comm == "simple_switch_g"
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert output.rstrip().endswith("stopped")


def test_what_the_command_line_asks_of_the_switch_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "everything.json").write_text(json.dumps(program_json()))
    wrpcap(str(tmp_path / "no-such_in.pcap"), [Ether()])
    port = free_port()
    arguments = ["everything.json", "--thrift-port", port, "--device-id", 4, "-i", "7@no-such", "--use-files", "0"]
    with running("simple_switch", *map(str, arguments), cwd=tmp_path) as process:
        wait_until_it_serves(process)
        shell = SimpleSwitchShell(Client(f"127.0.0.1:{port}", None))
        for command in ("show_ports", "switch_info", "get_time_elapsed", "get_time_elapsed", "get_time_since_epoch"):
            shell.onecmd(command)
        shell.client.close()
    title, line, port_line, device, thrift, *sockets, first, second, epoch = capsys.readouterr().out.splitlines()
    assert (title.split(), set(line)) == (["port", "#", "iface", "name", "status", "extra", "info"], {"="})
    assert port_line.split() == ["7", "no-such", "DOWN"]
    assert (device, thrift) == ("device_id                : 4", f"thrift_port              : {port}")
    assert len(sockets) == 3
    assert 0 < int(first) < int(second) < PATIENCE_S * 1e6
    assert abs(int(epoch) / 1e6 - time.time()) < PATIENCE_S


@pytest.mark.parametrize(
    ("options", "code"),
    [([], grpc.StatusCode.PERMISSION_DENIED), (["--bmv2-arbitration"], grpc.StatusCode.FAILED_PRECONDITION)],
)
def test_a_write_before_anybody_was_elected(tmp_path: Path, options: list[str], code: grpc.StatusCode) -> None:
    address = f"127.0.0.1:{free_port()}"
    with running(
        "simple_switch_grpc", "--no-p4", *options, "--", "--grpc-server-addr", address, cwd=tmp_path
    ) as process:
        wait_until_it_serves(process)
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
            p4r_grpc.P4RuntimeStub(channel).Write(p4r.WriteRequest(), timeout=PATIENCE_S)
    assert refused.value.code() == code


def test_p4runtime_over_tls_for_clients_with_a_certificate(tmp_path: Path) -> None:
    """A whole session of finsy's, and none for a client that has no certificate."""
    authority, port = Authority(tmp_path, "ca"), free_port()
    (certificate, key), (client, client_key) = authority.issue("server"), authority.issue("client")
    files = [
        "--grpc-server-cacert",
        authority.certificate,
        "--grpc-server-cert",
        certificate,
        "--grpc-server-key",
        key,
    ]
    address = ["--grpc-server-addr", f"127.0.0.1:{port}"]
    tls = ["--grpc-server-ssl", "--grpc-server-with-client-auth", *files]

    def credentials(certificate: Path | None, key: Path | None) -> fy.GRPCCredentialsTLS:
        return fy.GRPCCredentialsTLS(cacert=authority.certificate, cert=certificate, private_key=key)

    async def session(credentials: fy.GRPCCredentialsTLS) -> bool:
        async with fy.Switch("s1", f"127.0.0.1:{port}", fy.SwitchOptions(channel_credentials=credentials)) as switch:
            return bool(switch.is_up)

    with running("simple_switch_grpc", "--no-p4", "--device-id", "1", "--", *address, *tls, cwd=tmp_path) as process:
        wait_until_it_serves(process)
        assert asyncio.run(session(credentials(client, client_key)))
        with pytest.raises(fy.P4ClientError, match="UNAVAILABLE"):
            asyncio.run(session(credentials(None, None)))


@pytest.mark.thorough
def test_a_program_given_at_the_start_runs_and_can_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "everything.json").write_text(json.dumps(program_json()))
    port, device_id = free_port(), 300
    arguments = ["everything.json", "--thrift-port", port, "--device-id", device_id, "--log-file", "log"]
    with running("simple_switch", *map(str, arguments), cwd=tmp_path) as process:
        wait_until_it_serves(process)
        client = Client(f"127.0.0.1:{port}", None)
        assert client.device_id == device_id
        assert {table.preamble.name for table in client.p4info.tables} == {"In.routes", "In.rules", "In.hosts"}
        client.close()
    assert "a program was loaded" in (tmp_path / "log.txt").read_text()


def test_a_program_given_at_the_start_is_none_to_controllers_before_they_push(tmp_path: Path) -> None:
    """As with BMv2; by Thrift, where our simple_switch_CLI looks, it is there."""
    (tmp_path / "everything.json").write_text(json.dumps(program_json()))
    compiled, table = everything(), p4r.TableEntry()
    thrift, address = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    arguments = ["everything.json", "--thrift-port", thrift.rpartition(":")[2], "--", "--grpc-server-addr", address]
    with running("simple_switch_grpc", *arguments, cwd=tmp_path) as process:
        wait_until_it_serves(process)
        shell = Client(thrift, None)
        assert {each.preamble.name for each in shell.p4info.tables} == {"In.routes", "In.rules", "In.hosts"}
        controller = Controller(address, device_id=0)
        stream = controller.become_primary()
        for request in (lambda: controller.read(table), lambda: controller.write((INSERT, table))):
            with pytest.raises(grpc.RpcError) as refused:
                request()
            assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert not controller.get_pipeline().HasField("config")

        config = p4r.ForwardingPipelineConfig(p4info=compiled.p4info, p4_device_config=compiled.json_text.encode())
        controller.push("VERIFY_AND_SAVE", config)
        assert len(controller.read(table)) == 0  # of the saved pipeline
        controller.push("COMMIT")
        assert controller.get_pipeline().config.p4info == compiled.p4info
        assert len(controller.read(table)) == 0
        shell.close()
        stream.close()
        controller.close()


@pytest.mark.thorough
def test_packets_from_files(tmp_path: Path) -> None:
    """And commands from the shell: packets that no route is for are dropped, and the log says so."""
    (tmp_path / "everything.json").write_text(json.dumps(program_json()))
    frames = [Ether(bytes([10, number, 0, 0]) + bytes(60)) for number in range(3)]
    wrpcap(str(tmp_path / "a_in.pcap"), frames)
    wrpcap(str(tmp_path / "b_in.pcap"), [])
    port = free_port()
    arguments = ["everything.json", "--thrift-port", str(port), "--use-files", "3", "-i", "0@a", "-i", "1@b"]
    with running("simple_switch", *arguments, "--log-console", cwd=tmp_path) as process:
        wait_until_it_serves(process)
        commands = "table_add routes forward 10.0.0.0/16 => 1\ntable_add routes forward 10.2.0.0/16 => 1\n"
        code = "import sys; from gradbed.switch.simple_switch.cli import main; sys.exit(main(sys.argv[1:]))"
        root = Path(__file__).resolve().parents[3]
        shell = [sys.executable, "-c", code, "--thrift-port", str(port)]
        said = subprocess.run(shell, input=commands, capture_output=True, text=True, check=True, cwd=root).stdout
        assert "handle 1" in said
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and (tmp_path / "b_out.pcap").stat().st_size < 24 + 2 * (16 + 64):
            time.sleep(0.01)
        process.terminate()
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert [bytes(frame) for frame in rdpcap(str(tmp_path / "b_out.pcap"))] == [bytes(frames[0]), bytes(frames[2])]
    assert "1 packet dropped by In.drop on a miss in table In.routes, at everything.p4:" in output


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.json"], "cannot read the program missing.json: No such file"),
        (["text.json"], "text.json is not JSON"),
        (["list.json"], "list.json is not BMv2 JSON"),
        (["object.json"], "BMv2 JSON"),
        (["--no-p4", "-i", "1@no-such-if"], "interface no-such-if: there is no such interface|needs root"),
        (["--no-p4", "--", "--grpc-server-addr", "nonsense"], "nonsense"),
        (["--no-p4", "--", "--cpu-port", "511"], "CPU port 511"),
        (["--no-p4", "--bogus"], "option --bogus is unknown"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line_and_status_1(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "text.json").write_text("text")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "object.json").write_text('{"pipelines": 3}')
    if "--grpc-server-addr" not in arguments:
        arguments = [*arguments, *([] if "--" in arguments else ["--"]), "--grpc-server-addr", "127.0.0.1:0"]
    with running("simple_switch_grpc", *arguments, cwd=tmp_path) as process:
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert errors.startswith("simple_switch_grpc: ")
    assert re.search(message, errors)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with running("simple_switch_grpc", "--no-p4", "--", "--grpc-server-addr", address, cwd=tmp_path) as process:
            _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert address in errors


def test_a_client_that_is_refused_leaves_its_address_and_the_reason_where_grpc_is_told_to_say_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/safety.md has it."""
    monkeypatch.setenv("GRPC_VERBOSITY", "INFO")
    monkeypatch.setenv("GRPC_TRACE", "handshaker")
    authority, port = Authority(tmp_path, "ca"), free_port()
    certificate, key = authority.issue("server")
    files = ["--grpc-server-cacert", authority.certificate, "--grpc-server-cert", certificate]
    tls = ["--grpc-server-ssl", "--grpc-server-with-client-auth", *files, "--grpc-server-key", key]
    options = ["--", "--grpc-server-addr", f"127.0.0.1:{port}", *tls]
    with running("simple_switch_grpc", "--no-p4", *options, cwd=tmp_path) as process:
        wait_until_it_serves(process)
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            own = client.getsockname()[1]
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            client.recv(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert "WRONG_VERSION_NUMBER" in errors
    assert f"peer_address=ipv4:127.0.0.1:{own}" in errors
