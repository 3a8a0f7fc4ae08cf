"""p4runtime-shell's own tests: each request that they make goes to our switch, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.conformance.suites.bench import SUPPORT, Bench
from tools.conformance.suites.p4info_program import program_of
from tools.conformance.suites.ptf import last_error
from tools.conformance.suites.result import Result

TIME_LIMIT_S = 300.0
ADDRESS = "127.0.0.1:9559"
P4INFO = Path("p4runtime_sh/testdata/unittest.p4info.pb.txt")

NO_ENTRY_YET = ("MODIFY", "DELETE", "READ")
"""The tests change, delete and read what nobody has inserted: NOT_FOUND is right then."""


def groups(folder: Path) -> dict[str, Callable[[Bench], list[Result]]]:
    """One: the tests of the shell."""
    return {"tests": _run}


def _run(bench: Bench) -> list[Result]:
    from finsy.proto import p4i
    from google.protobuf import text_format

    from gradbed.switch.compiler import compile_p4

    p4info = p4i.P4Info()
    text_format.Merge((bench.folder / P4INFO).read_text(encoding="utf-8"), p4info)
    made = program_of(p4info)
    source = bench.scratch / "unittest.p4"
    source.write_text(made.source, encoding="utf-8")
    compiled = compile_p4(source)
    config, shown, report = (bench.scratch / name for name in ("config.json", "p4info.txt", "report.json"))
    config.write_text(compiled.json_text, encoding="utf-8")
    shown.write_text(compiled.p4info_text, encoding="utf-8")
    options = ["--no-p4", "--", "--grpc-server-addr", ADDRESS, "--cpu-port", "255"]
    bench.start(["simple_switch_grpc", *options], cwd=bench.scratch)
    command = [str(bench.python), str(SUPPORT / "forward_requests.py"), ADDRESS, str(shown), str(config), str(report)]
    more = {"PYTHONPATH": str(bench.folder)}
    ended = bench.run(command, cwd=bench.folder, time_limit_s=TIME_LIMIT_S, more=more)
    if not report.is_file():
        return [Result("tests", "stopped" if ended.status is None else "failed", last_error(ended.output))]
    return results_of(json.loads(report.read_text(encoding="utf-8")), made.left_out)


def results_of(tests: Mapping[str, Any], left_out: Mapping[int, str]) -> list[Result]:
    """A result for each test: whether it passed, and whether the switch took all its requests.

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
            results.append(Result(short, "failed", " ".join(test["problem"].split())))
        elif refused and missing:
            results.append(Result(short, "not run", left_out[min(missing)]))
        elif refused:
            results.append(Result(short, "refused", " ".join(refused[0].split())))
        else:
            results.append(Result(short, "passed"))
    return results
