"""gradbed p4 stf: packet tests of a P4 program."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli import options
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
        run = script_runner(switch)
        scripts = [read_stf(path) for path in tests or [program.with_suffix(".stf")]]
        run_one = partial(
            run, read_json(bmv2_json) if bmv2_json is not None else compile_program(program, include, define)
        )
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


def script_runner(name: str) -> Callable[[dict[str, Any], Script], Outcome]:
    """Return what runs a script on the switch that --switch names. UserError for an unknown one."""
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


def compile_program(
    program: Path, include: list[Path] | None = None, define: list[str] | None = None
) -> dict[str, Any]:
    """Compile a program to BMv2 JSON. UserError if it is missing or wrong."""
    from gradbed.switch.compiler import compile_p4

    if not program.is_file():
        raise UserError(f"no such P4 program: {program}")
    return compile_p4(program, include_dirs=include or [], defines=options.macros(define)).json


def read_json(path: Path) -> dict[str, Any]:
    """Read BMv2 JSON from a file. UserError if it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} is not BMv2 JSON: it is not an object")
    return content
