"""p4lang's p4runtime-shell as the controller, where it is installed: GRADBED_P4RUNTIME_SHELL names its Python."""

from __future__ import annotations

import os
import subprocess
import textwrap
import threading
from pathlib import Path

import pytest

from tests.unit.p4runtime.network import H2, H3, compiled, frame, running

PYTHON = os.environ.get("GRADBED_P4RUNTIME_SHELL")

pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="GRADBED_P4RUNTIME_SHELL does not name a Python with p4runtime-shell"
)

SETUP = """
import sys
import p4runtime_sh.shell as sh
sh.setup(1, sys.argv[1], (0, 1), config=sh.FwdPipeConfig(sys.argv[2], sys.argv[3]))
try:
"""
# Its receiving thread would keep the process alive.
TEARDOWN = """
finally:
    sh.teardown()
"""


def shell(program: str, directory: Path, script: str, *frames: bytes) -> str:
    """What a script prints; where it waits for a line, the next of the frames is sent to port 1."""
    with running(compiled(program, directory)) as network:
        options = network.options
        body = textwrap.indent(textwrap.dedent(script), "    ")
        process = subprocess.Popen(
            [str(PYTHON), "-c", SETUP + body + TEARDOWN, network.address, str(options.p4info), str(options.p4blob)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        # The shell's own threads keep it alive when it fails.
        killer = threading.Timer(60, process.kill)
        killer.start()
        printed = ""
        for sent in frames:
            while not (line := process.stdout.readline()).startswith("send"):
                assert line, process.communicate()[1]
                printed += line
            network.engine.inject(1, 1, sent)
            assert network.engine.quiesce(10)
            process.stdin.write("\n")
            process.stdin.flush()
        rest, errors = process.communicate()
        killer.cancel()
        assert process.returncode == 0, errors
        return printed + rest


@pytest.mark.thorough
def test_tables_counters_and_packets(tmp_path: Path) -> None:
    printed = shell(
        "punt.p4",
        tmp_path,
        f"""
        te = sh.TableEntry("PuntIngress.hosts")(action="forward")
        te.match["dst_addr"] = "{H2}"
        te.action["port"] = "2"
        te.insert()
        te.action["port"] = "3"
        te.modify()
        print("entries", len(list(te.read())))
        print("send", flush=True)
        input()
        counter = sh.CounterEntry("port_counter")
        print("counts", [(c.index, c.packet_count) for c in counter.read() if c.packet_count])
        punt = sh.TableEntry("hosts")(action="punt")
        punt.match["dst_addr"] = "{H3}"
        punt.action["reason"] = "7"
        punt.insert()
        packets = sh.PacketIn()
        print("send", flush=True)
        input()
        [packet] = packets.sniff(timeout=5)
        print("packet", packet.packet.metadata[1].value, len(packet.packet.payload))
        sh.PacketOut(payload=b"x" * 20, egress_port="2", pad="0").send()
        sh.MulticastGroupEntry(1).add(2, 1).add(3, 2).insert()
        print("groups", [len(g.replicas) for g in sh.MulticastGroupEntry().read()])
        try:
            te.insert()
        except Exception as error:
            print("again", "ALREADY_EXISTS" in str(error))
        te.delete()
        print("entries", len(list(te.read())))
        """,
        frame(H2),
        frame(H3),
    )
    wanted = ("entries", "counts", "packet", "groups", "again")
    lines = [line for line in printed.splitlines() if line.split(" ")[0] in wanted]
    assert lines == [
        "entries 1",
        "counts [(3, 1)]",
        f"packet b'\\x07' {len(frame(H3))}",
        "groups [2]",
        "again True",
        "entries 0",
    ]
