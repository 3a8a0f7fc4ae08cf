"""The switch process's P4Runtime server as others reach it: by a socket in the run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4r

from gradbed.emulation.network import EmulatedNetwork
from gradbed.emulation.switches.gradbed_switches import P4RUNTIME_SOCKET, SOCKET_PATH_BYTES
from gradbed.topo.generators import star
from tests.emulation.sandboxed import in_sandbox
from tests.unit.p4runtime.client import TIMEOUT_S, Client

pytestmark = [pytest.mark.thorough, pytest.mark.root]


@pytest.mark.parametrize("long", [False, True])
@in_sandbox
def test_socket(tmp_path: Path, long: bool) -> None:
    """A path that is too long for a socket is no reason not to start."""
    folder = tmp_path / ("x" * SOCKET_PATH_BYTES if long else "run")
    folder.mkdir()
    with EmulatedNetwork(star(2), run_dir=folder) as network:
        unix_socket = folder / P4RUNTIME_SOCKET
        assert unix_socket.exists() is not long
        address = network.backend.control_address("s1") if long else f"unix:{unix_socket}"
        client = Client(address)
        client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
        client.close()
