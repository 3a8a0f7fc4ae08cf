"""p4runtime-shell's own tests: each request that they make goes to our switch, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.conformance.suites.environment import SUPPORT, SuiteEnvironment
from tools.conformance.suites.p4info_program import program_of
from tools.conformance.suites.ptf import last_error
from tools.conformance.suites.result import SuiteResult

TIME_LIMIT_S = 300.0
ADDRESS = "127.0.0.1:9559"
P4INFO = Path("p4runtime_sh/testdata/unittest.p4info.pb.txt")

NO_ENTRY_YET = ("MODIFY", "DELETE", "READ")
"""The tests change, delete and read what nobody has inserted: NOT_FOUND is right then."""


def groups(folder: Path) -> dict[str, Callable[[SuiteEnvironment], list[SuiteResult]]]:
    """Return one group: the tests of the shell."""
    return {"tests": _run}


def _run(env: SuiteEnvironment) -> list[SuiteResult]:
    from finsy.proto import p4i
    from google.protobuf import text_format

    from gradbed.switch.compiler import compile_p4

    p4info = p4i.P4Info()
    text_format.Merge((env.folder / P4INFO).read_text(encoding="utf-8"), p4info)
    made = program_of(p4info)
    source = env.scratch / "unittest.p4"
    source.write_text(made.source, encoding="utf-8")
    compiled = compile_p4(source)
    config, shown, report = (env.scratch / name for name in ("config.json", "p4info.txt", "report.json"))
    config.write_text(compiled.json_text, encoding="utf-8")
    shown.write_text(compiled.p4info_text, encoding="utf-8")
    options = ["--no-p4", "--", "--grpc-server-addr", ADDRESS, "--cpu-port", "255"]
    env.start(["simple_switch_grpc", *options], cwd=env.scratch)
    command = [
        str(env.python),
        str(SUPPORT / "forward_requests.py"),
        ADDRESS,
        str(shown),
        str(config),
        str(report),
    ]
    more = {"PYTHONPATH": str(env.folder)}
    ended = env.run(command, cwd=env.folder, time_limit_s=TIME_LIMIT_S, more=more)
    if not report.is_file():
        return [SuiteResult("tests", "stopped" if ended.status is None else "failed", last_error(ended.output))]
    return results_of(json.loads(report.read_text(encoding="utf-8")), made.left_out)


def results_of(tests: Mapping[str, Any], left_out: Mapping[int, str]) -> list[SuiteResult]:
    """Return a result for each test: whether it passed, and whether the switch took all its requests.

    left_out: what the switch's program lacks, by identifier: tests that use it show nothing of the switch.
    """
    results = []
    for name, test in tests.items():
        short = " ".join(name.split(".", 2)[-1].split())
        refused = [
            f"{what}: {details}"
            for what, code, details, _ in test["requests"]
            if code != "OK" and not (what.startswith(NO_ENTRY_YET) and details.startswith("NOT_FOUND"))
        ]
        missing = {each for *_, used in test["requests"] for each in used} & left_out.keys()
        if not test["passed"]:
            results.append(SuiteResult(short, "failed", " ".join(test["problem"].split())))
        elif refused and missing:
            results.append(SuiteResult(short, "not run", left_out[min(missing)]))
        elif refused:
            results.append(SuiteResult(short, "refused", " ".join(refused[0].split())))
        else:
            results.append(SuiteResult(short, "passed"))
    return results
