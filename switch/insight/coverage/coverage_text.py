"""A coverage report as text: a table of shares, what was not reached, and the source with counts in the margin."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gradbed.switch.insight.coverage.coverage import Item, Report, percent
from gradbed.switch.insight.source import SourceMap

_STYLES = {"reached": "green", "partly": "yellow", "unreached": "red"}
_MISSED_SHOWN = 20


def print_report(report: Report, sources: SourceMap, console: Console, *, whole: bool = False) -> None:
    """whole: all that was not reached, not just the beginning of long lists."""
    console.print(
        f"{report.program}: reached by {report.packets} packet{'' if report.packets == 1 else 's'}", style="bold"
    )
    width = max(map(len, report.items))
    for category in report.items:
        reached, total = report.reached(category)
        share = percent(reached, total)
        shown = "   -  " if share is None else f"{share:5.1f} %"
        style = "" if share is None else "green" if share == 100 else "yellow" if share else "red"
        console.print(Text(f"  {category:<{width}}  {reached:>5} of {total:>5}  {shown}", style=style))
    _print_missed(report, console, whole)
    for file in report.lines:
        text = sources.file(file)
        if text is not None:
            _print_source(file, text, lines_of(report, file), console)


def lines_of(report: Report, file: str) -> dict[int, tuple[str, str]]:
    """Margin and state of each line with code: a count, with * where part of the line was not reached, or #####."""
    margins = {}
    for number, line in report.lines[file].items():
        margin = "#####" if not line.hits else f"{line.hits}{'*' if line.missed else ''}"
        margins[number] = margin, line.state
    return margins


def _print_missed(report: Report, console: Console, whole: bool) -> None:
    missed = {category: [item for item in items if not item.hits] for category, items in report.items.items()}
    if not any(missed.values()):
        return
    console.print("\nNot reached", style="bold")
    for category, items in missed.items():
        shown = items if whole else items[:_MISSED_SHOWN]
        for item in shown:
            console.print(Text(f"  {category:<14} {_place(item)}{item.name}"), soft_wrap=True)
        if len(items) > len(shown):
            console.print(Text(f"  {category:<14} ... {len(items) - len(shown)} more", style="dim"))


def _place(item: Item) -> str:
    return f"{item.source}  " if item.source else ""


def _print_source(file: str, text: tuple[str, ...], margins: dict[int, tuple[str, str]], console: Console) -> None:
    console.print(f"\n{file}", style="bold")
    for number, line in enumerate(text, start=1):
        margin, state = margins.get(number, ("", ""))
        console.print(
            Text(f"{margin:>8} {number:>5}  ", style="dim" if not state else _STYLES[state]).append(
                line, style=_STYLES[state] if state in ("partly", "unreached") else ""
            ),
            soft_wrap=True,
        )
