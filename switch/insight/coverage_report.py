"""A coverage report: a table of shares, what was not reached, and the source with counts in the margin, as text or as
one HTML page that needs nothing else.
"""

from __future__ import annotations

from html import escape

from rich.console import Console
from rich.text import Text

from gradbed.switch.insight.coverage import CoverageItem, Report, percent
from gradbed.switch.insight.source import SourceMap

# ---- Text ----


_STYLES = {"reached": "green", "partly": "yellow", "unreached": "red"}
_MISSED_SHOWN = 20


def print_report(report: Report, sources: SourceMap, console: Console, *, whole: bool = False) -> None:
    """Print a report; with `whole`, all that was not reached instead of the beginning of long lists."""
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
    """Return the margin and state of each line with code.

    The margin is a count, with * where part of the line was not reached, or #####.
    """
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


def _place(item: CoverageItem) -> str:
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


# ---- HTML ----


_STYLE = """
:root { color-scheme: light dark; --line: #8884; --reached: #2da44e2e; --partly: #d4a72c3d; --unreached: #cf222e3a; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; }
.shares td, .shares th { padding: .2rem .9rem .2rem 0; text-align: left; }
.shares .number { text-align: right; font-variant-numeric: tabular-nums; }
.bar { width: min(12rem, 25vw); height: .7rem; background: var(--unreached); }
.bar div { height: 100%; background: #2da44e; }
.source { width: 100%; border: 1px solid var(--line); display: block; overflow-x: auto; }
.source { font: 13px/1.5 ui-monospace, monospace; }
.source td { padding: 0 .6rem; white-space: pre; }
.source .count, .source .line { text-align: right; color: #888; user-select: none; }
.source td:last-child { width: 100%; }
tr.reached { background: var(--reached); } tr.partly { background: var(--partly); }
tr.unreached, li.unreached { background: var(--unreached); }
details { margin: .4rem 0; } summary { cursor: pointer; } li span { color: #888; }
.key span { padding: .1rem .5rem; margin-right: .6rem; }
"""


def html_page(report: Report, sources: SourceMap) -> str:
    """Return the page: shares, all items with their counts, and the source with its lines' states."""
    title = f"Coverage of {escape(report.program)}"
    packets = f"{report.packets} packet{'' if report.packets == 1 else 's'}"
    parts = [
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>Reached by {packets}.</p>",
        _shares(report),
        _items(report),
        '<p class="key">Lines: <span style="background: var(--reached)">reached</span>'
        '<span style="background: var(--partly)">partly</span>'
        '<span style="background: var(--unreached)">not reached</span></p>',
    ]
    for file in report.lines:
        text = sources.file(file)
        if text is not None:
            parts.append(_source(report, file, text))
    return "\n".join([*parts, "</body>\n</html>\n"])


def _shares(report: Report) -> str:
    rows = []
    for category in report.items:
        reached, total = report.reached(category)
        share = percent(reached, total)
        shown = "" if share is None else f"{share:.1f} %"
        bar = "" if share is None else f'<div class="bar"><div style="width: {share}%"></div></div>'
        rows.append(
            f'<tr><th scope="row">{category}</th><td class="number">{reached} of {total}</td>'
            f'<td class="number">{shown}</td><td>{bar}</td></tr>'
        )
    return f'<table class="shares">{"".join(rows)}</table>'


def _items(report: Report) -> str:
    parts = ["<h2>What was reached how often</h2>"]
    for category, items in report.items.items():
        if not items:
            continue
        reached, total = report.reached(category)
        rows = []
        for item in items:
            state = "reached" if item.hits else "unreached"
            place = f" <span>{escape(str(item.source))}</span>" if item.source else ""
            rows.append(f'<li class="{state}">{escape(item.name)}: {item.hits}{place}</li>')
        summary = f"<summary>{category}: {reached} of {total}</summary>"
        parts.append(f"<details>{summary}<ul>{''.join(rows)}</ul></details>")
    return "\n".join(parts)


def _source(report: Report, file: str, text: tuple[str, ...]) -> str:
    margins = lines_of(report, file)
    rows = []
    for number, line in enumerate(text, start=1):
        margin, state = margins.get(number, ("", ""))
        missed = report.lines[file][number].missed if state == "partly" else ()
        tip = f' title="not reached: {escape("; ".join(missed))}"' if missed else ""
        rows.append(
            f'<tr class="{state}"{tip}><td class="count">{margin}</td><td class="line">{number}</td>'
            f"<td>{escape(line)}</td></tr>"
        )
    return f'<h2>{escape(file)}</h2>\n<table class="source"><tbody>{"".join(rows)}</tbody></table>'
