"""gradbed p4 coverage: what of a program a workload reaches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradbed.cli import options
from gradbed.cli.p4 import setup as p4_setup
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.switch.insight.coverage import Report


def coverage(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model, or BMv2 JSON.")],
    pcap: p4_setup.Pcap = None,
    port: Annotated[
        int | None, typer.Option(help="Ingress port of the packets of the capture file.", show_default="0")
    ] = None,
    stf: Annotated[
        list[Path] | None, typer.Option("--stf", help="STF file, run on a switch of its own; may be repeated.")
    ] = None,
    entries: p4_setup.Entries = None,
    switch: p4_setup.SwitchName = None,
    p4info: p4_setup.P4Info = None,
    source: p4_setup.SourceFolder = None,
    cpu_port: p4_setup.CpuPort = 510,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the coloured source.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Print long lists in full.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    include: options.Include = None,
    define: options.Define = None,
) -> int:
    """Show which parser states, table entries, actions, branches and statements packets reach, and which not."""
    from gradbed.switch.insight.coverage import Coverage, cover_frames, cover_script
    from gradbed.switch.stf import read_stf

    if pcap is None:
        _check_without_pcap(stf, entries, port)
    scripts = [read_stf(path) for path in stf or []]
    frames = p4_setup.frames(pcap) if pcap is not None else []
    setup = p4_setup.load(program, include, define, p4info, source)
    covered = Coverage(setup.program, setup.sources)
    if pcap is not None:
        cover_frames(
            setup.program,
            covered,
            port or 0,
            frames,
            lambda traced: setup.fill(traced, entries or [], switch),
            cpu_port,
        )
    for script in scripts:
        for failure in cover_script(setup.program, covered, script).failures:
            print(f"note: the test fails: {failure}", file=sys.stderr)
    report = covered.report()
    if html is not None:
        _write_page(html, report, setup)
    if as_json:
        print(json.dumps(report.to_json(), indent=1))
        return 0
    from rich.console import Console

    from gradbed.switch.insight.coverage_report import print_report

    print_report(report, setup.sources, Console(highlight=False), whole=whole)
    return 0


def _check_without_pcap(stf: list[Path] | None, entries: list[Path] | None, port: int | None) -> None:
    if not stf:
        raise UserError("give packets: --pcap FILE, --stf FILE, or both")
    if entries:
        raise UserError("--entries goes with --pcap: an STF file brings its own entries")
    if port is not None:
        raise UserError("--port goes with --pcap: an STF file says where its packets arrive")


def _write_page(path: Path, report: Report, setup: p4_setup.Setup) -> None:
    from gradbed.switch.insight.coverage_report import html_page

    try:
        path.write_text(html_page(report, setup.sources), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
