"""python -m tools.conformance CHECKOUT: run the tests of another repository on gradbed's compiler and switch.

Run it at the top of a checkout of gradbed, with the Python of its environment (docs/conformance.md).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli.commands import Entry, provide
from gradbed.cli.main import run_command_line
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from tools.conformance.suites import Checkout

NAME = "python -m tools.conformance"
NEEDS = Entry(place="", help="", layers=("p4",))
REASON_CHARACTERS = 200

app = typer.Typer(add_completion=False)


@app.command()
def conformance(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="A checkout of p4c, PI, p4-guide, finsy, p4runtime-shell or tutorials, or a folder of programs with "
            "STF files."
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Name of a program, without .p4, or of a group of tests; may be repeated."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of programs tested at the same time.")] = 2,
    expect: Annotated[
        Path | None,
        typer.Option(help="File with the names of what must pass, one on each line; default: all of them."),
    ] = None,
    compiler: Annotated[str, typer.Option(help="gradbed, or p4c where it is installed.")] = "gradbed",
    switch: Annotated[str, typer.Option("--switch", help="gradbed, or bmv2 where it is installed.")] = "gradbed",
    errors: Annotated[
        bool, typer.Option("--errors", help="Instead: p4c's wrong programs, which our compiler must refuse.")
    ] = False,
    python: Annotated[
        Path, typer.Option(help="Python with what the tests of another repository import, such as ptf.")
    ] = Path(sys.executable),
) -> int:
    """Run the tests of a checkout on our compiler and switch. Exit status 1 if one that must pass does not.

    Of p4c, these are the v1model programs with STF files. Tests of the other repositories need root.
    """
    from tools.conformance.stf_corpus import read_names
    from tools.conformance.suites import find_checkout

    checkout = find_checkout(corpus)
    if checkout is not None:
        if errors or (compiler, switch) != ("gradbed", "gradbed"):
            raise UserError(
                f"{checkout.suite.name}'s tests run on our own compiler and switch: "
                "leave out --errors, --compiler and --switch"
            )
        return print_suite(checkout, python, only or [], read_names(expect) if expect is not None else None)
    if errors:
        if expect is not None or (compiler, switch) != ("gradbed", "gradbed"):
            raise UserError("--errors is about our compiler alone: leave out --expect, --compiler and --switch")
        return print_refusals(corpus, only or [])
    return print_corpus(corpus, only or [], jobs, expect, compiler, switch)


def print_corpus(corpus: Path, only: list[str], jobs: int, expect: Path | None, compiler: str, switch: str) -> int:
    """Run the STF tests of a folder and print a line for each, then the counts. 1 if one that must pass does not."""
    from gradbed.cli.p4.stf import script_runner
    from tools.conformance.stf_corpus import compiler_named, corpus_programs, read_names, run_corpus

    programs = corpus_programs(corpus, only)
    names = {program.stem for program in programs}
    required = read_names(expect) if expect is not None else names
    compile_, run = compiler_named(compiler), script_runner(switch)
    stages: dict[str, str] = {}
    width = max(map(len, names))
    for result in run_corpus(programs, compile_, run, jobs=jobs):
        stages[result.name] = result.stage
        reason = f": {shortened(result.reason)}" if result.reason else ""
        print(f"{result.name:{width}}  {result.stage}{reason}", flush=True)
    counts = Counter(stages.values())
    share = 100 * counts["passed"] / len(names)
    print(f"\n{counts.pop('passed', 0)} of {len(names)} passed ({share:.1f} %)")
    for stage, count in sorted(counts.items()):
        print(f"{count} failed: {stage}")
    must = required & names if only else required
    failed = sorted(name for name in must if stages.get(name) != "passed")
    if expect is not None:
        print(
            f"{len(must) - len(failed)} of the {len(must)} of {expect} passed; failed or missing: {failed or 'none'}"
        )
    print_version("p4c", corpus)
    return 1 if failed else 0


def print_refusals(corpus: Path, only: list[str]) -> int:
    """Print the wrong programs that are not refused at the line that p4c names, then the counts.

    Returns:
        1 if our compiler accepts one of them, otherwise 0.
    """
    from tools.conformance.refusals import OUTCOMES, REFUSED, error_samples, refusal

    results = [refusal(program) for program in error_samples(corpus, only)]
    for result in results:
        if result.outcome != "same line":
            lines = ", ".join(map(str, result.lines)) or "no line"
            said = f": {shortened(result.ours)}" if result.ours else ""
            print(f"{result.name}  {result.outcome} (p4c: {lines}){said}")
    counts = Counter(result.outcome for result in results)
    print(f"\n{sum(counts[outcome] for outcome in REFUSED)} of {len(results)} refused")
    for outcome, meaning in OUTCOMES.items():
        if counts[outcome]:
            print(f"{counts[outcome]:4} {outcome}: {meaning}")
    print_version("p4c", corpus)
    return 0 if counts.keys() <= REFUSED else 1


def print_suite(checkout: Checkout, python: Path, only: Sequence[str], expected: frozenset[str] | None) -> int:
    """Run the tests of a checkout and print a line for each, then the counts.

    Args:
        checkout: Whose tests.
        python: The Python that has what they import.
        only: The groups of tests to run; empty for all.
        expected: The tests that must pass; None for all that can be run here.

    Returns:
        1 if a test that must pass does not, otherwise 0.
    """
    from tools.conformance.suites import OUTCOMES, Stopped, run_suite

    outcomes = {}
    try:
        for result in run_suite(checkout, python, only):
            outcomes[result.name] = result.outcome
            reason = f": {shortened(result.reason)}" if result.reason else ""
            print(f"{result.name}  {result.outcome}{reason}", flush=True)
    except Stopped as stopped:
        return stopped.status
    counts = Counter(outcomes.values())
    run = len(outcomes) - counts["not run"]
    print(f"\n{counts['passed']} of {run} passed")
    for outcome, meaning in OUTCOMES.items():
        if counts[outcome]:
            print(f"{counts[outcome]:4} {outcome}: {meaning}")
    print_version(checkout.suite.name, checkout.folder)
    required = {name for name, outcome in outcomes.items() if outcome != "not run"} if expected is None else expected
    failed = sorted(name for name in required if outcomes.get(name) != "passed")
    if expected is not None:
        print(f"must pass: {len(required)}; failed or missing: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


def print_version(name: str, folder: Path) -> None:
    """Print the commit that was tested, if the folder is the top of a checkout."""
    from tools.conformance.suites import read_version

    version = read_version(folder)
    if version is not None:
        print(f"{name} {version}")


def shortened(text: str) -> str:
    """Return the text on one line, truncated where it is too long for a table."""
    line = " ".join(text.split())
    return line if len(line) <= REASON_CHARACTERS else f"{line[: REASON_CHARACTERS - 3]}..."


def command() -> Any:
    """Return the command, with what it needs installed first."""
    made = typer.main.get_command(app)
    provide(made, NEEDS)
    return made


if __name__ == "__main__":
    run_command_line(command(), NAME, [sys.executable, "-m", "tools.conformance", *sys.argv[1:]])
