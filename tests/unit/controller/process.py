"""Controllers as processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradbed.topo.generators import leaf_spine

ROOT = Path(__file__).parents[3]
TOPOLOGY = leaf_spine(2, 1, 2)
TIMEOUT_S = 30.0
SERVICE = "gradbed.controller.systems.aggregation.service:AggregationService"


def command(config: dict[str, Any], directory: Path) -> list[str]:
    path = directory / "controller.json"
    path.write_text(json.dumps(config))
    return [sys.executable, "-m", "gradbed.controller.app", str(path)]


@contextlib.contextmanager
def started(config: dict[str, Any], directory: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The process at once. What it writes to standard error is in the file stderr of its directory."""
    directory.mkdir(exist_ok=True)
    with (directory / "stderr").open("w") as errors:
        process = subprocess.Popen(
            command(config, directory), cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, **options
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def running(config: dict[str, Any], directory: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The process, once it has said that it is ready."""
    with started(config, directory, **options) as process:
        assert event(process) == "ready", (directory / "stderr").read_text()
        yield process


def event(process: subprocess.Popen[str]) -> str:
    """The next one that it tells; "" when it has ended, which it does if it says nothing for too long."""
    assert process.stdout is not None
    patience = threading.Timer(4 * TIMEOUT_S, process.kill)
    patience.start()
    line = process.stdout.readline()
    patience.cancel()
    return str(json.loads(line)["event"]) if line else ""
