"""gradbed p4 corpus: a folder of P4 programs with our compiler and with p4c."""

from __future__ import annotations

import dataclasses
import json
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradbed.cli import options
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.switch.corpus import Comparison

TIME_LIMIT_S = 300.0


def corpus(
    folder: Annotated[Path, typer.Argument(help="Every v1model program below it is compiled.")],
    p4c: Annotated[
        Path | None, typer.Option(help="p4c's BMv2 compiler (p4c-bm2-ss) to compare with; without it, ours alone.")
    ] = None,
    include: options.Include = None,
    define: options.Define = None,
    jobs: Annotated[int, typer.Option(min=1, help="Programs at the same time.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> int:
    """Compile all v1model programs of a folder; print which are refused, and where P4Info is not p4c's.

    Exit status 1 if our compiler and p4c differ about a program or, without p4c, if ours refuses one.
    """
    from gradbed.switch.corpus import Comparison, Verdict, compare_program, find_programs
    from gradbed.switch.stf.isolated import each_in_own_process

    theirs = _compiler(p4c)
    programs = find_programs(folder)
    compare = partial(compare_program, theirs, [*(include or []), folder], options.macros(define), folder)
    results: list[Comparison] = []
    for ended in each_in_own_process(compare, programs, jobs=jobs, time_limit_s=TIME_LIMIT_S):
        stopped = Verdict(False, f"defect: {ended.how}")
        result = ended.value or Comparison(
            str(ended.argument.relative_to(folder)), stopped, stopped if theirs else None
        )
        results.append(result)
        if not as_json:
            _print(result)
    results.sort(key=lambda result: result.program)
    good = [result for result in results if (result.agree if theirs else result.ours.accepted)]
    if as_json:
        print(json.dumps({"programs": [dataclasses.asdict(result) for result in results]}, indent=2))
    elif theirs:
        print(f"\nthe same for {len(good)} of {len(results)} programs")
    else:
        print(f"\n{len(good)} of {len(results)} programs compile")
    return 0 if len(good) == len(results) else 1


def _compiler(p4c: Path | None) -> str | None:
    if p4c is None:
        return None
    found = shutil.which(p4c)
    if found is None:
        raise UserError(f"--p4c: there is no program {p4c} that can be run")
    return found


def _print(result: Comparison) -> None:
    """What is worth a line: refused by one of the two, or P4Info that differs."""
    for name, verdict in (("ours", result.ours), ("p4c", result.theirs)):
        if verdict is not None and not verdict.accepted:
            print(f"{result.program}: refused by {name}: {verdict.reason}", flush=True)
    for difference in result.differences:
        print(f"{result.program}: {difference}", flush=True)
