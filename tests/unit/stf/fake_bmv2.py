"""Stand-ins for BMv2's simple_switch and simple_switch_CLI, as scripts: enough to test what is said to them.

The switch reads its pcap pipes in the order that BMv2's reader does, and sends each packet, with its number in front,
out of the port that its first byte names; it ends where BMv2 would if a program is called "broken". The command line
writes what it is told to `commands`.
"""

from __future__ import annotations

import sys
from pathlib import Path

SWITCH = """
import json, socket, struct, sys

arguments = sys.argv[1:]
if json.load(open(arguments[arguments.index("--") - 1]))["program"] == "broken":
    sys.exit("no such primitive")
assert arguments[-1] == "--priority-queues=8"
server = socket.create_server(("127.0.0.1", int(arguments[arguments.index("--thrift-port") + 1])))
ports = [a.split("@") for a in arguments if "@" in a]
pipes = {int(p): open(f"{name}_in.pcap", "rb", buffering=0) for p, name in ports}
out = {int(p): open(f"{name}_out.pcap", "wb", buffering=0) for p, name in ports}

def exactly(file, count):
    data = b""
    while len(data) < count:
        piece = file.read(count - len(data))
        if not piece:
            return None
        data += piece
    return data

def following(file):
    header = exactly(file, 16)
    return header and (struct.unpack("=IIII", header)[0], exactly(file, struct.unpack("=IIII", header)[2]))

for file in pipes.values():
    magic, major, minor, _, _, snap, kind = struct.unpack("=IHHiIII", exactly(file, 24))
    assert (magic, major, minor, snap, kind) == (0xA1B2C3D4, 2, 4, 65535, 1)
for file in out.values():
    file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
current = {port: following(file) for port, file in pipes.items()}
number = 0
while any(current.values()):
    port = min((port for port in current if current[port]), key=lambda port: current[port][0])
    frame = bytes([number, port]) + current[port][1]
    out[frame[2]].write(struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame)
    number += 1
    current[port] = following(pipes[port])
while True:
    server.accept()
"""

COMMAND_LINE = """
import sys

ANSWERS = {
    "table_add": "Entry has been added with handle 7",
    "act_prof_create_member": "Member has been created with handle 3",
    "act_prof_create_group": "Group has been created with handle 4",
    "table_indirect_add_with_group": "Entry has been added with handle 6",
    "table_indirect_add": "Indirect entry has been added with handle 5",
    "counter_read": "I.seen[1]= (60 bytes, 2 packets)",
    "register_read": "I.cells[1]= 9",
    "register_write": "Invalid register operation (INVALID_INDEX)",
}
print("Control utility")
while True:
    sys.stdout.write("RuntimeCmd: ")
    sys.stdout.flush()
    command = sys.stdin.readline()
    with open(sys.argv[0] + ".commands", "a") as file:
        file.write(command)
    if not command or command.startswith("mirroring_get"):
        sys.exit("lost the connection")
    if command == "register_read I.cells\\n":
        print("I.cells= 0, 9, 9223372036854775807")
        continue
    if command == "register_read I.cells 2\\n":
        print("I.cells[2]= 9223372036854775807")
        continue
    print(ANSWERS.get(command.split()[0], ""))
"""


def install(folder: Path) -> None:
    """Write both scripts, beside a simple_switch_grpc that GRADBED_BMV2 can name."""
    for name, text in (("simple_switch", SWITCH), ("simple_switch_CLI", COMMAND_LINE), ("simple_switch_grpc", "")):
        script = folder / name
        script.write_text(f"#!{sys.executable}\n{text}")
        script.chmod(0o755)


def commands(folder: Path) -> list[str]:
    """What the command line was told."""
    return (folder / "simple_switch_CLI.commands").read_text().splitlines()
