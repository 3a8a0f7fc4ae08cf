"""The tools' command lines report what is wrong as gradbed does: in one line, with status 2."""

from __future__ import annotations

import pytest

from tests.command import tool
from tests.conftest import ToolHere


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["bench", "nothing"], ["nothing"]),
        (["bench", "plcement"], ["Did you mean 'placement'?"]),
        (["bench", "lanes", "--repetitions", "0"], ["--repetitions: ", "1"]),
        (["bench", "switch", "--seconds", "0"], ["--seconds: ", "0.1"]),
        (["bench", "scale", "aggregation-65"], ["no trial 'aggregation-65'", "aggregation-64"]),
        (["bench", "placement", "--sizes", "4"], ["--sizes: ", "K:M"]),
        (["conformance", "/no/such"], ["there is no folder /no/such"]),
        (["conformance"], ["corpus"]),
        (["corpus", "/no/such"], ["there is no folder /no/such"]),
        (["corpus", "p4src", "--p4c", "/no/p4c"], ["--p4c", "/no/p4c"]),
    ],
)
def test_mistakes(words: list[str], expected: list[str], tool_here: ToolHere) -> None:
    ended = tool_here(*words)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("gradbed: ")
    for piece in expected:
        assert piece in ended.err


def test_as_a_process() -> None:
    ended = tool("bench", "rounsd")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "gradbed: No such command 'rounsd'. Did you mean 'rounds'? (see --help)\n"
