"""Who is at the other end of a connection over loopback, as another account makes and closes it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from gradbed.common.peer_account import LoopbackPeers

pytestmark = [pytest.mark.thorough, pytest.mark.root]

UID = 65534
CONNECT = """
import os, socket, sys
os.setgroups([]), os.setgid({uid}), os.setuid({uid})
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.readline()
connection.close()
print("closed", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_owner_is_whoever_has_the_socket_and_nobody_once_it_is_closed(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    peers = LoopbackPeers()
    with socket.create_server((host, 0), family=family) as listener:
        command = [sys.executable, "-c", CONNECT.format(uid=UID), host, str(listener.getsockname()[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdin is not None and client.stdout is not None
            assert client.stdout.readline() == "connected\n"
            accepted, place = listener.accept()
            with accepted:
                ends = place[:2], accepted.getsockname()[:2]
                assert peers.owner(*ends) == UID
                assert "account with user id 65534" in str(peers.refuses(*ends))
                client.stdin.write("\n")
                client.stdin.flush()
                assert client.stdout.readline() == "closed\n"
                assert peers.owner(*ends) is None
                assert "a process that has gone" in str(peers.refuses(*ends))
                client.communicate()
    peers.close()
