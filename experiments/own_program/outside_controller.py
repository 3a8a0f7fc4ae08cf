"""A controller of the user's own: any P4Runtime client, told by its environment where the switches are."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.experiments.testbeds.mininet_testbed import MininetTestbed

TARGETS, TOPOLOGY = "GRADBED_TARGETS", "GRADBED_TOPOLOGY"
"""Variables of the environment. JSON: switch -> address, device_id, p4info, json; path of the topology as JSON."""

NOBODY = "none"
STOP_TIMEOUT_S = 3.0


@contextlib.contextmanager
def outside_controller(testbed: MininetTestbed, command: str) -> Iterator[None]:
    """Print where the switches are, put it into the environment, and run the command until this is left; "none": run
    nothing. UserError if it cannot be started."""
    targets = testbed.targets()
    topology = testbed.folder / "topology.json"
    topology.write_text(testbed.topology.to_json())
    os.environ.update({TARGETS: json.dumps(targets), TOPOLOGY: str(topology)})
    for name, target in targets.items():
        print(f"gradbed: {name}: P4Runtime at {target['address']}, device id {target['device_id']}", file=sys.stderr)
    print(f"gradbed: the same is in {TARGETS} and {TOPOLOGY}, also for 'sh' at the prompt", file=sys.stderr)
    if command == NOBODY:
        yield
        return
    try:
        process = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL)
    except (OSError, ValueError) as error:
        raise UserError(f"--controller {command}: {error}") from None
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
