"""A program of python-ndn on a host of a Mininet network (examples/ndn_client.py), as docs/ndn.md shows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gradbed.hosts.learning.fragments import as_sent
from gradbed.hosts.learning.settings import SyntheticSettings
from gradbed.hosts.learning.workload import sum_digest, synthetic_gradient
from tests.command import run_well

pytest.importorskip("ndn", reason="python-ndn is not installed")

pytestmark = [pytest.mark.thorough, pytest.mark.root]

LANES = 96
VALUE = 7
SETTINGS = SyntheticSettings(values=960, rounds=3, seed=1)

SCRIPT = """\
job start --peers 2 --workload synthetic --values 960 --rounds 3
job wait 1
contents
h4 {program} fetch /training-1/h1/v=2/seg=0
contents
h4 {program} fetch /training-1/h1/v=9/seg=0 --lifetime-ms 200
job start --peers 3 --outside h4 --workload synthetic --values 960 --rounds 3
h4 {program} publish /training-2/h4 --value {value} > {answered} 2>&1 &
job wait 2
drops
"""


def test_it_fetches_from_a_store_and_publishes_to_peers(tmp_path: Path) -> None:
    answered = tmp_path / "answered"
    script = SCRIPT.format(program=f"{sys.executable} examples/ndn_client.py", value=VALUE, answered=answered)
    ended = run_well("up", "--system", "ndn", "--topology", "star:4", "--rest-port", 0, input=script, timeout_s=150)
    output = ended.stdout + ended.stderr
    print(output)

    # From the store: the job is over, its routes are gone, and one more Interest was answered by the router.
    lanes = synthetic_gradient(SETTINGS, 0, 2)[:4].astype(">i4").tobytes()
    found = re.search(r"/training-1/h1/v=2/seg=0: (\d+) bytes, ([0-9a-f]+) \.\.\.", output)
    assert found, output
    assert int(found[1]) == 16 + 4 * LANES
    assert bytes.fromhex(found[2])[16:] == lanes
    before, after = (int(count) for count in re.findall(r"s1: \d+ Data of 4096, (\d+) Interests answered", output))
    assert after == before + 1
    assert "/training-1/h1/v=9/seg=0: a router sent a Nack (no route)" in output

    # To peers: their sums have its gradients in them.
    total = np.full(SETTINGS.values, VALUE, np.int64)
    for peer in range(3):
        total += synthetic_gradient(SETTINGS, peer, 2)
    assert f"the last {sum_digest(as_sent(total, LANES))[:16]}" in output
    names = {f"/training-2/h4/v={version}/seg={segment}" for version in range(3) for segment in range(10)}
    assert names <= {line.removeprefix("answered ") for line in answered.read_text().splitlines()}
    assert re.search(r"s1: .*no route \d", output)
