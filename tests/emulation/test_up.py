"""gradbed up: Mininet's prompt inside, the REST interface outside."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.unit.p4runtime.certificates import Authority

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

ROOT = Path(__file__).resolve().parents[2]


def test_hosts_reach_each_other_and_jobs_are_taken_over_rest() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "up", "--topology", "leaf-spine:2,2,2", "--rest-port", "0"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stderr
    try:
        while not (found := re.search(r"http://[0-9.:]+", process.stderr.readline())):
            assert process.poll() is None
        request = urllib.request.Request(
            f"{found[0]}/jobs",
            json.dumps({"workers": ["h2", "h3"], "server": "h1"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 201
            assert json.load(answer)["designations"][0][0]["fan_in"] == 2
        _, output = process.communicate("pingall\nexit\n", timeout=60)  # Mininet logs on standard error
        assert "0% dropped (12/12 received)" in output
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_p4runtime_over_tls_outside_the_network(tmp_path: Path) -> None:
    """A client without a certificate gets no answer, one that has one reads a switch's program."""
    authority = Authority(tmp_path, "ca")
    (certificate, key), (client, client_key) = authority.issue("server"), authority.issue("client")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    tls = [f"--p4runtime-cert={certificate}", f"--p4runtime-key={key}"]
    mutual = [f"--p4runtime-client-ca={authority.certificate}", f"--p4runtime-address={address}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "up", "--topology", "star:2", "--rest-port", "0", *tls, *mutual],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    roots = authority.certificate.read_bytes()
    try:
        assert process.stderr
        while f"P4Runtime over TLS at {address}" not in process.stderr.readline():
            assert process.poll() is None
        with (
            grpc.secure_channel(address, grpc.ssl_channel_credentials(roots)) as stranger,
            pytest.raises(grpc.RpcError, match="UNAVAILABLE"),
        ):
            p4r_grpc.P4RuntimeStub(stranger).GetForwardingPipelineConfig(request, timeout=20)
        own = grpc.ssl_channel_credentials(roots, client_key.read_bytes(), client.read_bytes())
        with grpc.secure_channel(address, own) as channel:
            answer = p4r_grpc.P4RuntimeStub(channel).GetForwardingPipelineConfig(request, timeout=20)
            assert answer.config.p4info.tables
        process.communicate("exit\n", timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = subprocess.run(
            [sys.executable, "-m", "cli", "up", "--topology", "star:2", "--rest-port", str(port)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert outcome.returncode == 2
    assert outcome.stderr == f"gradbed: --rest-port {port}: Address already in use; choose another, or 0\n"
