"""gradbed up: Mininet's prompt inside, the REST interface outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from gradbed.common.store import cache_dir
from gradbed.switch.p4lang.p4runtime_shell import PACKAGE
from tests.command import ROOT, gradbed
from tests.emulation.prompt import Prompt
from tests.pcapng import read_pcapng
from tests.unit.cli.bootstrap.test_bootstrap import write_program
from tests.unit.p4runtime.certificates import Authority

pytestmark = [pytest.mark.thorough, pytest.mark.root]

TIMEOUT_S = 200


SCRIPT = """\
dpctl dump-flows
source /nope
px exit()
px raise SystemExit
h1
nonsense
link l1 s9 down
link l1 s1 colour 3
link l1 s1 rate -1
restart h1
trace h1 h1
iperf h1 x9
job start --workers 9
job start --rounds x
job stop 7
plan s9
help link
link l1 s1 down
trace h1 h6
pingall
link l1 s1 up
link l1 s1
pingall
job start --workers 2 --rounds 30
job start --workers 2 --rounds 5
job wait 2
job wait 3
job start --workers 2 --rounds 10000
job list
job stop 4
slots l1
counters l1
load 0.1
iperf h1 h6
restart s1
restart l1
pingall
wait
link l1 s1 loss 0.999
link l1 s2 loss 0.999
h1 ping -c 3 -i 0.2 -W 0.5 h4
"""

ONE_LINE_EACH = (
    "*** dpctl: all switches are P4 switches",
    "*** source: cannot read /nope: No such file or directory",
    "*** px: SystemExit",
    "*** nonsense: there is no such command or node; did you mean 'nodes'?",
    "*** link: leaf-spine:2,2,3 has no link between 'l1' and 's9'",
    "*** link: a link has no 'colour'",
    "*** link: rate: must be more than 0, got '-1'",
    "*** restart: there is no switch 'h1'",
    "*** trace: h1 is both ends",
    "*** iperf: there is no host 'x9'; see 'help' and 'nodes'",
    "*** job: 9 workers and a server need 10 hosts, 4 of 6 are free",
    "*** job: --rounds: must be a whole number",
    "*** job: there is no job '7'",
    "*** plan: there is no switch 's9'",
)


def test_no_command_ends_the_network_and_all_do_what_they_say() -> None:
    """One network for all commands; the end of the input ends it. Job 1 is asked for at the REST interface."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gradbed", "up", "--topology", "leaf-spine:2,2,3", "--rest-port", "0"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin and process.stdout
    watchdog = threading.Timer(TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        while not (found := re.search(r"http://[0-9.:]+", process.stdout.readline())):
            assert process.poll() is None
        request = urllib.request.Request(
            f"{found[0]}/systems/aggregation/jobs",
            json.dumps({"workers": ["h4"], "server": "h1"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 201
        process.stdin.write(SCRIPT.split("help link")[0])
        process.stdin.flush()
        for expected in ONE_LINE_EACH:
            while expected not in (line := process.stdout.readline()):
                assert line, f"no {expected!r}"
        delete = urllib.request.Request(f"{found[0]}/systems/aggregation/jobs/1", method="DELETE")
        with urllib.request.urlopen(delete, timeout=20) as answer:
            assert answer.status == 204
        os.killpg(process.pid, signal.SIGINT)
        while "Interrupt" not in (line := process.stdout.readline()):
            assert line, "Ctrl-C at the prompt ended the network"
        output, _ = process.communicate("help link" + SCRIPT.split("help link")[1], timeout=TIMEOUT_S)
        assert process.returncode == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    print(output)
    assert "Traceback" not in output
    assert "Usage: link A B" in output
    assert "l1-s1: down, 100 Mbit/s" in output
    assert re.search(r"l1: ipv4.dst_addr=10.0.1.0/24 -> .* to s2\n", output), "the way around the cut link"
    assert output.count("Results: 0% dropped (30/30 received)") == 3
    assert re.search(r"job 2 done .* 30/30 .* all sums exact", output)
    assert re.search(r"job 3 done .* 5/5 .* all sums exact", output)
    assert re.search(r"job 4 (starts|runs) ", output)
    assert "job 4 stopped" in output
    assert re.search(r" \d+ of 4096 held\n", output), "those of the stopped job may be left until others take them"
    assert re.search(r"job 2: claimed \d+", output)
    measured = (
        r"TCP from h1 to h6: [\d.]+ [KM]bits/sec" if shutil.which("iperf") else "iperf is missing: apt-get install"
    )
    assert re.search(measured, output)
    assert "s1 holds its part of the plan again" in output
    assert "l1-s2: up, 100 Mbit/s, delay 50 us, queue 1000 packets, loss 0.999" in output
    assert "3 packets transmitted, 0 received" in output


def test_p4runtime_over_tls_outside_the_network(tmp_path: Path) -> None:
    """A client without a certificate gets no answer, one that has one reads a switch's program."""
    authority = Authority(tmp_path, "ca")
    (certificate, key), (client, client_key) = authority.issue("server"), authority.issue("client")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    tls = [f"--p4runtime-cert={certificate}", f"--p4runtime-key={key}"]
    mutual = [f"--p4runtime-client-ca={authority.certificate}", f"--p4runtime-address={address}"]
    prompt = Prompt("--topology", "star:2", *tls, *mutual, folder=ROOT)
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    roots = authority.certificate.read_bytes()
    try:
        prompt.wait_for(f"P4Runtime over TLS at {address}")
        with (
            grpc.secure_channel(address, grpc.ssl_channel_credentials(roots)) as stranger,
            pytest.raises(grpc.RpcError, match="UNAVAILABLE"),
        ):
            p4r_grpc.P4RuntimeStub(stranger).GetForwardingPipelineConfig(request, timeout=20)
        own = grpc.ssl_channel_credentials(roots, client_key.read_bytes(), client.read_bytes())
        with grpc.secure_channel(address, own) as channel:
            answer = p4r_grpc.P4RuntimeStub(channel).GetForwardingPipelineConfig(request, timeout=20)
            assert answer.config.p4info.tables
    finally:
        assert prompt.close() == 0


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = gradbed("up", "--topology", "star:2", "--rest-port", port, input="", timeout_s=60)
    assert outcome.returncode == 2
    assert outcome.stderr == f"gradbed: --rest-port {port}: Address already in use; choose another, or 0\n"


CAPTURES = """\
capture l1-s1 count 4
capture h2 h2.pcapng
capture l1-s3
capture h1 /nope/file
capture h1 count many
h1 ping -c 3 -i 0.05 h2
capture
capture stop
capture h1 again.pcapng
h1 ping -c 1 h2
"""


def test_captures_from_the_beginning_and_at_the_prompt(tmp_path: Path) -> None:
    done = gradbed(
        "up",
        *("--topology", "leaf-spine:2,1,1", "--rest-port", "0", "--pcap", "s1-l2,h1"),
        cwd=tmp_path,
        input=CAPTURES,
        timeout_s=TIMEOUT_S,
        PYTHONPATH=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^.*l1-s1: 4 packets in /\S+/l1-s1.pcapng$", done.stdout, re.MULTILINE)
    assert re.search(r"^.*h2: 6 packets in /\S+/h2.pcapng$", done.stdout, re.MULTILINE)
    # The network's end ends them.
    assert re.search(r"^.*h1: 2 packets in /\S+/again.pcapng$", done.stdout, re.MULTILINE)
    assert "did you mean 'l1-s1'?" in done.stdout
    assert "*** capture: cannot write the capture /nope/file: No such file or directory" in done.stdout
    assert "*** capture: count is a number, not 'many'" in done.stdout
    host = read_pcapng(tmp_path / "h2.pcapng")
    assert [(each.interface, each.flow) for each in host] == [("h2-eth0", "in"), ("h2-eth0", "out")] * 3
    assert abs(host[0].time_ns / 1e9 - time.time()) < TIMEOUT_S
    link = read_pcapng(tmp_path / "l1-s1.pcapng")
    assert [each.interface for each in link] == ["l1->s1", "s1->l1"] * 2
    # An echo request, one hop earlier.
    assert link[0].frame[34:] == host[0].frame[34:] and link[0].time_ns < host[0].time_ns
    folder = tmp_path / "results" / "up" / "latest" / "pcap"
    assert {file.name: len(read_pcapng(file)) for file in folder.iterdir()} == {"h1.pcapng": 8, "s1-l2.pcapng": 8}


def test_captures_of_what_is_not_there_are_said_before_anything_runs(tmp_path: Path) -> None:
    done = gradbed("up", "--topology", "leaf-spine:2,1,1", "--pcap", "l1-s9", cwd=tmp_path, PYTHONPATH=ROOT)
    assert (done.returncode, done.stderr) == (
        2,
        "gradbed: leaf-spine:2,1,1 has no link or host 'l1-s9'; did you mean 'l1-s1'?\n",
    )
    assert list(tmp_path.iterdir()) == []


SEND = """\
#!/usr/bin/env python3
import sys
from scapy.all import IP, UDP, Ether, get_if_list, sendp

(interface,) = [name for name in get_if_list() if name != "lo"]
packet = Ether(dst="ff:ff:ff:ff:ff:ff") / IP(dst=sys.argv[1]) / UDP(dport=4321) / sys.argv[2]
sendp(packet, iface=interface, verbose=False)
print("sent on", interface)
"""
PROGRAMS = """\
capture h1
h1 ./send.py 10.0.1.2 hello
xterm h2
xterm h9
xterm
p4sh l1
p4sh h1
"""


def test_programs_of_others_run_in_hosts_and_in_windows(tmp_path: Path) -> None:
    """Stand-ins: an xterm that tells which interfaces it sees, a P4Runtime shell that tells what it is asked."""
    (tmp_path / "bin").mkdir()
    for name, text in {
        "xterm": f"cat /proc/net/dev > {tmp_path}/seen.part; mv {tmp_path}/seen.part {tmp_path}/seen",
        "xhost": "exit 0",
    }.items():
        write_program(tmp_path / "bin" / name, f"#!/bin/sh\n{text}\n")
    write_program(tmp_path / "send.py", SEND)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    shell = tmp_path / "cache" / f"{PACKAGE.replace('==', '-')}-python{version}"
    (shell / "bin").mkdir(parents=True)
    (shell / "complete").touch()
    write_program(shell / "bin" / "python", '#!/bin/sh\necho "shell: $*"\n')
    for kept in cache_dir().glob("*"):  # so that nothing is compiled again
        if kept.name != shell.name:
            (shell.parent / kept.name).symlink_to(kept)
    lines = PROGRAMS + f"sh while [ ! -e {tmp_path}/seen ]; do sleep 0.05; done\n"
    environment = {"PYTHONPATH": ROOT, "DISPLAY": ":77", "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = gradbed(
        "up", "--topology", "leaf-spine:2,1,1", "--rest-port", "0", cwd=tmp_path, input=lines, timeout_s=TIMEOUT_S,
        GRADBED_CACHE=tmp_path / "cache", **environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sent on h1-eth0" in done.stdout + done.stderr
    (packet,) = [each for each in read_pcapng(tmp_path / "h1.pcapng") if b"hello" in each.frame]
    assert packet.flow == "out"
    assert "h2-eth0" in (tmp_path / "seen").read_text()
    assert "*** xterm: there is no node 'h9'" in done.stdout and "*** xterm: on which node?" in done.stdout
    asked = r"shell: -m p4runtime_sh --grpc-addr 127.0.0.1:\d+ --device-id \d+ --election-id 0,0\n"
    assert re.search(asked, done.stdout)
    assert "*** p4sh: there is no switch 'h1'" in done.stdout
