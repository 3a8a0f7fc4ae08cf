"""PI's tests with PTF (proto/ptf), which were written for Python 2.

Its own runner reads text where Python 3 gives bytes, so what it does is done here: push the pipeline before anybody
is elected, then start ptf. Strings with hexadecimal escapes become bytes, which they were in Python 2.
"""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.conformance.suites.environment import SUPPORT, SuiteEnvironment
from tools.conformance.suites.ptf import TIME_LIMIT_S, last_error, results_of
from tools.conformance.suites.result import SuiteResult

ADDRESS = "localhost:9559"
START_LIMIT_S = 30.0


def groups(folder: Path) -> dict[str, Callable[[SuiteEnvironment], list[SuiteResult]]]:
    """Return a group for each program that has tests."""
    programs = sorted((folder / "proto/ptf").glob("*/*.p4"))
    return {program.stem: partial(_run, program) for program in programs if list(program.parent.glob("test/*.py"))}


def _run(program: Path, env: SuiteEnvironment) -> list[SuiteResult]:
    name, ptf = program.stem, program.parents[1]
    for test in (program.parent / "test").glob("*.py"):
        test.write_text(bytes_as_in_python_2(test.read_text(encoding="utf-8")), encoding="utf-8")
    config, p4info = env.scratch / "config.json", env.scratch / "p4info.txt"
    command = ["p4c-bm2-ss", "--std", "p4-16", str(program), "-o", str(config)]
    compiled = env.run(
        [*command, "--p4runtime-format", "text", "--p4runtime-file", str(p4info)], cwd=ptf, time_limit_s=TIME_LIMIT_S
    )
    if compiled.status:
        return [SuiteResult(name, "refused", last_error(compiled.output))]
    ports = json.loads((ptf / "bmv2/port_map.json").read_text(encoding="utf-8"))
    of_switch = [f"-i{port['p4_port']}@veth{2 * n}" for n, port in enumerate(ports)]
    env.start(["simple_switch_grpc", *of_switch, "--no-p4", "--", "--grpc-server-addr", ADDRESS], cwd=ptf)
    push = [str(env.python), str(SUPPORT / "push_pipeline.py"), ADDRESS, str(p4info), str(config)]
    pushed = env.run([*push, str(START_LIMIT_S)], cwd=ptf, time_limit_s=2 * START_LIMIT_S)
    if pushed.status:
        return [SuiteResult(name, "refused", last_error(pushed.output))]
    of_tests = [f"-i{port['p4_port']}@{port['iface_name']}" for port in ports]
    parameters = f"--test-params=p4info='{p4info}';grpcaddr='{ADDRESS}'"
    ended = env.run(
        ["ptf", "--test-dir", str(program.parent / "test"), *of_tests, parameters],
        cwd=ptf,
        time_limit_s=TIME_LIMIT_S,
        more={"PYTHONPATH": str(ptf)},
    )
    return results_of(ended, name, TIME_LIMIT_S)


def bytes_as_in_python_2(source: str) -> str:
    """Return the source with a b before each string that has hexadecimal escapes and no prefix."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string
        if token.type == tokenize.STRING and "\\x" in text and text[0] in "'\"":
            text = f"b{text}"
        tokens.append((token.type, text))
    return tokenize.untokenize(tokens)
