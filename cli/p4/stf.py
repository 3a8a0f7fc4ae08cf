"""gradbed p4 stf and gradbed p4 conformance: packet tests of P4 programs, one or a whole corpus."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli import options
from gradbed.cli.p4.suites import print_suite, print_version, shortened
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.switch.reference.stf import ReferenceOutcome
    from gradbed.switch.stf import Outcome, Script


def stf(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    tests: Annotated[
        list[Path] | None, typer.Argument(metavar="[TEST.stf ...]", help="Default: PROGRAM with .stf.")
    ] = None,
    bmv2_json: Annotated[
        Path | None,
        typer.Option("--bmv2-json", help="BMv2 JSON of the program (such as p4c's), instead of compiling it."),
    ] = None,
    include: options.Include = None,
    define: options.Define = None,
    switch: Annotated[
        str, typer.Option("--switch", help="gradbed, bmv2 where it is installed, or reference.")
    ] = "gradbed",
) -> int:
    """Send the packets of STF files through a program and check what comes out. Exit status 1 if a file fails."""
    from gradbed.switch.stf import read_stf

    if switch == "reference":
        if bmv2_json is not None:
            raise UserError("the reference interprets the source: leave --bmv2-json out")
        run_one: Callable[[Script], Outcome | ReferenceOutcome] = partial(_run_on_reference, program, include, define)
        scripts = [read_stf(path) for path in tests or [program.with_suffix(".stf")]]
    else:
        run = _runner(switch)
        scripts = [read_stf(path) for path in tests or [program.with_suffix(".stf")]]
        run_one = partial(run, _read_json(bmv2_json) if bmv2_json is not None else _compile(program, include, define))
    passed = True
    for script in scripts:
        try:
            outcome = run_one(script)
        except ValueError as error:
            raise UserError(f"{bmv2_json or program}: {error}") from None
        if outcome.misfit is not None:
            raise UserError(outcome.misfit)
        passed &= outcome.passed
        print(f"{'passed' if outcome.passed else 'FAILED'}  {script.path}")
        for failure in outcome.failures:
            print(f"  {failure}")
        for reason in outcome.not_possible:
            print(f"  not possible: {reason}")
    return 0 if passed else 1


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
    jobs: Annotated[int, typer.Option(min=1, help="Programs at the same time.")] = 2,
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
    from gradbed.emulation.suites import find_checkout
    from gradbed.switch.stf.conformance import read_names

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
        return _wrong_programs(corpus, only or [])
    from gradbed.switch.stf.conformance import corpus_programs, run_corpus

    programs = corpus_programs(corpus, only or [])
    names = {program.stem for program in programs}
    required = read_names(expect) if expect is not None else names
    compile_, run = _compiler(compiler), _runner(switch)
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


def _wrong_programs(corpus: Path, only: list[str]) -> int:
    """Print what is not refused at the line that p4c names, and how many of each. 1 if one is not refused."""
    from gradbed.switch.corpus.refusals import OUTCOMES, REFUSED, error_samples, refusal

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


def _compiler(name: str) -> Callable[[Path], dict[str, Any]]:
    from gradbed.switch.p4lang.p4c import require_p4c

    if name == "gradbed":
        return _compile
    if name != "p4c":
        raise UserError(f"--compiler: gradbed or p4c, not {name}")
    return partial(_compile_with_p4c, require_p4c())


def _runner(name: str) -> Callable[[dict[str, Any], Script], Outcome]:
    if name == "gradbed":
        return _run
    if name != "bmv2":
        raise UserError(f"--switch: gradbed, bmv2 or reference, not {name}")
    from gradbed.switch.p4lang.bmv2 import require_simple_switch

    require_simple_switch()
    return _run_on_bmv2


def _run(bmv2_json: dict[str, Any], script: Script) -> Outcome:
    from gradbed.switch.codegen import build_program
    from gradbed.switch.stf import run_script

    return run_script(build_program(bmv2_json), script)


def _run_on_bmv2(bmv2_json: dict[str, Any], script: Script) -> Outcome:
    from gradbed.switch.stf.bmv2_target import run_script_on_bmv2

    return run_script_on_bmv2(bmv2_json, script)


def _run_on_reference(
    program: Path, include: list[Path] | None, define: list[str] | None, script: Script
) -> ReferenceOutcome:
    from gradbed.switch.reference import ReferenceSwitch
    from gradbed.switch.reference.stf import run_on_reference

    return run_on_reference(ReferenceSwitch(program, include or (), defines=options.macros(define)), script)


def _compile(program: Path, include: list[Path] | None = None, define: list[str] | None = None) -> dict[str, Any]:
    from gradbed.switch.compiler import compile_p4

    if not program.is_file():
        raise UserError(f"no such P4 program: {program}")
    return compile_p4(program, include_dirs=include or [], defines=options.macros(define)).json


def _compile_with_p4c(p4c: str, program: Path) -> dict[str, Any]:
    from gradbed.switch.p4lang.p4c import compile_with_p4c

    with tempfile.TemporaryDirectory() as folder:
        bmv2_json = Path(folder) / "program.json"
        compile_with_p4c(p4c, program, {}, bmv2_json, Path(folder) / "program.p4info.txt")
        return _read_json(bmv2_json)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not BMv2 JSON: it is not an object")
    return content
