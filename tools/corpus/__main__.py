"""python -m tools.corpus FOLDER: compile a folder of P4 programs with our compiler and with p4c.

Run it at the top of a checkout of gradbed, with the Python of its environment (docs/conformance.md).
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli import options
from gradbed.cli.commands import Entry, provide
from gradbed.cli.main import run_command_line
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from tools.corpus.comparison import Comparison

NAME = "python -m tools.corpus"
NEEDS = Entry(place="", help="", layers=("p4",))
TIME_LIMIT_S = 300.0

app = typer.Typer(add_completion=False)


@app.command()
def corpus(
    folder: Annotated[Path, typer.Argument(help="Every v1model program below it is compiled.")],
    p4c: Annotated[
        Path | None, typer.Option(help="p4c's BMv2 compiler (p4c-bm2-ss) to compare with; without it, ours alone.")
    ] = None,
    include: options.Include = None,
    define: options.Define = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of programs compiled at the same time.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> int:
    """Compile all v1model programs of a folder; print which are refused, and where P4Info is not p4c's.

    Exit status 1 if our compiler and p4c differ about a program or, without p4c, if ours refuses one.
    """
    from gradbed.switch.stf.isolated import each_in_own_process
    from tools.corpus.comparison import Comparison, Verdict, compare_program, find_programs

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
    """Print which compiler refuses the program, and each difference of P4Info."""
    for name, verdict in (("ours", result.ours), ("p4c", result.theirs)):
        if verdict is not None and not verdict.accepted:
            print(f"{result.program}: refused by {name}: {verdict.reason}", flush=True)
    for difference in result.differences:
        print(f"{result.program}: {difference}", flush=True)


def command() -> Any:
    """Return the command, with what it needs installed first."""
    made = typer.main.get_command(app)
    provide(made, NEEDS)
    return made


if __name__ == "__main__":
    run_command_line(command(), NAME, [sys.executable, "-m", "tools.corpus", *sys.argv[1:]])
