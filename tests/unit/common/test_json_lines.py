"""Child processes of a parent that has more open files than select(2) knows."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradbed.common.errors import ProcessLost
from gradbed.common.json_lines import JsonLinesProcess

SELECT_LIMIT = 1024


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * SELECT_LIMIT:
        pytest.skip("too few descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * SELECT_LIMIT, hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(SELECT_LIMIT)]
    yield
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_that_is_killed_is_one_line_with_a_log_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADBED_CACHE", str(tmp_path / "cache"))
    log = tmp_path / "log"
    process = JsonLinesProcess("small child", ["sh", "-c", "echo first >&2; echo last >&2; kill -9 $$"], log)
    with pytest.raises(ProcessLost) as lost:
        process.event(60.0)
    with pytest.raises(ProcessLost):
        process.check()
    log.unlink()
    said, _, kept = str(lost.value).partition("; its log: ")
    assert said == "the small child was ended by signal 9 (Killed)"
    assert Path(kept).read_text() == "first\nlast\n"
    process.stop(60.0)


def test_events_arrive_however_many_files_are_open(many_descriptors: None, tmp_path: Path) -> None:
    process = JsonLinesProcess("child", ["sh", "-c", """echo '{"event": "ready"}'; cat"""], tmp_path / "log")
    try:
        assert process.event(60.0) == {"event": "ready"}
        with pytest.raises(RuntimeError, match="the child does not answer"):
            process.event(0.01)
    finally:
        process.stop(60.0)
