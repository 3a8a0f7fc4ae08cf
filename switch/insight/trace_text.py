"""A trace as text: on the left where in the source, on the right what happened; or what decided about the packet
alone."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from gradbed.switch.bmv2_json.model import Source
from gradbed.switch.insight import trace_events as e
from gradbed.switch.insight.packet_state import Change, FieldChange, Request, ValidityChange
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace_events import match_text, value_text

# ---- All that happened ----


_TITLES = {"parse": "PARSER", "ingress": "INGRESS", "egress": "EGRESS", "deparse": "DEPARSER"}
_FIELDS_SHOWN = 6
_EFFECTS_SHOWN = 16
_BYTES_SHOWN = 64
_FRAME_SHOWN = 128
_BYTES_A_LINE = 32


@dataclass(frozen=True)
class TextLine:
    """A line of text, beside the source."""

    text: str
    depth: int = 0
    style: str = ""
    """Style of rich."""
    source: Source | None = None
    """Source at the left side; None leaves it empty."""


def trace_text(trace: e.Trace, sources: SourceMap, columns: int = 120) -> str:
    """Return what print_trace prints, without colours."""
    console = Console(file=io.StringIO(), width=columns, highlight=False)
    print_trace(trace, sources, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def print_trace(trace: e.Trace, sources: SourceMap, console: Console, *, whole: bool = False) -> None:
    """Print a trace; with `whole`, all of long lists (fields, statements of one line) instead of their beginning."""
    lines = list(_Writer(sources, whole).trace(trace))
    width = max((len(str(line.source)) for line in lines if line.source), default=0)
    for line in lines:
        if not line.text:
            console.print()
            continue
        text = Text(f"{line.source or ''!s:<{width}}  ", style="dim")
        text.append("  " * line.depth)
        text.append(line.text, style=line.style)
        console.print(text, soft_wrap=True)


class _Writer:
    def __init__(self, sources: SourceMap, whole: bool) -> None:
        self._sources = sources
        self._whole = whole

    def trace(self, trace: e.Trace) -> Iterator[TextLine]:
        yield TextLine(f"{trace.program}: {_count(len(trace.frame), 'byte')} arrive at port {trace.port}", 0, "bold")
        for stage in trace.stages:
            yield TextLine("")
            yield TextLine(_title(stage), 0, "bold cyan")
            yield from self._events(stage)
            for decision in stage.decisions:
                yield from self._decision(decision)
        yield TextLine("")
        if trace.outputs:
            ports = ", ".join(f"port {port} ({_count(len(frame), 'byte')})" for port, frame in trace.outputs)
            yield TextLine(f"Sent: {ports}", 0, "bold green")
        else:
            yield TextLine("Nothing was sent.", 0, "bold red")

    def _events(self, stage: e.TraceStage) -> Iterator[TextLine]:
        headers: list[str] = []
        for is_statement, group in itertools.groupby(
            stage.events, lambda event: isinstance(event, e.ExecutedStatement)
        ):
            if is_statement:
                yield from self._statements([event for event in group if isinstance(event, e.ExecutedStatement)], 1)
                continue
            for event in group:
                if isinstance(event, e.Emitted):
                    headers.append(event.header)
                elif isinstance(event, e.ParserState):
                    yield from self._parser_state(event)
                elif isinstance(event, e.TableApplication):
                    yield from self._table(event)
                elif isinstance(event, e.Branch):
                    yield from self._branch(event)
                elif isinstance(event, e.ChecksumStep):
                    yield from self._checksum(event)
                elif isinstance(event, e.DigestMade):
                    yield TextLine(f"digest {event.name} to the controller", 1, "magenta")
        if stage.name == "deparse":
            yield TextLine(f"emit {', '.join(headers)}" if headers else "no header is valid", 1)

    def _line(self, source: Source | None, otherwise: str) -> str:
        """Return the source line without the braces of the block that it begins or ends."""
        line = self._sources.line(source) if source else None
        return (line and line.removeprefix("}").removesuffix("{").strip()) or otherwise

    # ---- Parser ----

    def _parser_state(self, state: e.ParserState) -> Iterator[TextLine]:
        line = self._line(state.source, f"state {state.name}")
        named = "" if state.name in line else f"  ({state.name})"
        yield TextLine(line + named, 1, "bold", state.source)
        for operation in state.operations:
            yield from self._operation(operation)
        if state.select or state.case is not None:
            values = ", ".join(f"{f.name} = {value_text(f.value, f.width, f.name)}" for f in state.select)
            yield TextLine(f"select {values}: {state.case} -> {state.following}", 2, "", state.transition_source)
        elif state.error is None:
            yield TextLine(f"-> {state.following}", 2, "", state.transition_source)
        if state.error is not None:
            yield TextLine(f"-> reject: error.{state.error}", 2, "bold red")

    def _operation(self, operation: e.ExecutedOperation) -> Iterator[TextLine]:
        text = self._line(operation.source, operation.text)
        taken = f"  {_hexadecimal(operation.data)}" if operation.data else ""
        yield TextLine(text + taken + ("  failed" if operation.failed else ""), 2, "", operation.source)
        yield from self._fields(operation.fields)
        yield from self._changes(operation.changes, 3)

    # ---- Controls ----

    def _branch(self, branch: e.Branch) -> Iterator[TextLine]:
        line = self._line(branch.source, f"if ({branch.text})")
        yield TextLine(f"{line}  is {str(branch.outcome).lower()}", 1, "", branch.source)
        operands = ", ".join(f"{f.name} = {value_text(f.value, f.width, f.name)}" for f in branch.operands)
        if operands:
            yield TextLine(operands, 2, "dim")

    def _table(self, table: e.TableApplication) -> Iterator[TextLine]:
        yield TextLine(f"table {table.name}", 1, "bold", table.source)
        for part in table.key:
            yield TextLine(f"{part.name} = {value_text(part.value, part.width, part.name)}  ({part.match})", 2)
        yield TextLine(table_outcome(table), 2, "green" if table.hit else "yellow")
        if table.counted:
            packets, bytes_ = table.counted
            yield TextLine(f"direct counter: {_count(packets, 'packet')}, {_count(bytes_, 'byte')}", 2)
        yield from self._changes(table.changes, 2)
        if table.action is not None:
            arguments = ", ".join(f"{a.name} = {value_text(a.value, a.width, a.name)}" for a in table.arguments)
            yield TextLine(f"action {table.action}({arguments})", 2, "bold", table.action_source)
        else:
            yield TextLine("no action", 2)
        yield from self._statements(table.statements, 3)

    def _statements(self, statements: Sequence[e.ExecutedStatement], depth: int) -> Iterator[TextLine]:
        """Yield lines for statements in order; those of one source line, such as a macro over all lanes, share
        one."""
        for _, group in itertools.groupby(statements, lambda s: str(s.source) if s.source else s.text):
            same = list(group)
            source = same[0].source
            yield TextLine(self._line(source, same[0].text), depth, "", source)
            effects = [line for statement in same for line in self._effects(statement, depth + 1)]
            shown = effects if self._whole or len(effects) <= _EFFECTS_SHOWN else effects[:_EFFECTS_SHOWN]
            yield from shown
            if len(effects) > len(shown):
                yield TextLine(f"... {len(effects) - len(shown)} more changes", depth + 1, "dim")

    def _effects(self, statement: e.ExecutedStatement, depth: int) -> Iterator[TextLine]:
        for use in statement.cells:
            yield TextLine(cell_text(use), depth, "magenta")
        yield from self._changes(statement.changes, depth)

    def _checksum(self, step: e.ChecksumStep) -> Iterator[TextLine]:
        yield TextLine(self._line(step.source, f"{step.task}_checksum of {step.target}"), 1, "", step.source)
        if step.task == "verify":
            wrong = any(isinstance(c, FieldChange) and c.new for c in step.changes)
            yield TextLine("wrong" if wrong else "right", 2, "red" if wrong else "green")
        yield from self._changes(step.changes, 2)

    def _changes(self, changes: Iterable[Change], depth: int) -> Iterator[TextLine]:
        for change in changes:
            if isinstance(change, FieldChange):
                old, new = (value_text(v, change.width, change.name) for v in (change.old, change.new))
                yield TextLine(f"{change.name}: {old} -> {new}", depth, "yellow")
            elif isinstance(change, ValidityChange):
                yield TextLine(f"{change.header}: {'valid' if change.valid else 'not valid'}", depth, "yellow")
            elif isinstance(change, Request):
                yield TextLine(_request_text(change), depth, "yellow")

    def _fields(self, fields: Sequence[e.FieldValue]) -> Iterator[TextLine]:
        shown = fields if self._whole or len(fields) <= 4 * _FIELDS_SHOWN else fields[:_FIELDS_SHOWN]
        for field in shown:
            yield TextLine(f"{field.name} = {value_text(field.value, field.width, field.name)}", 3)
        if len(fields) > len(shown):
            yield TextLine(f"... {len(fields) - len(shown)} more fields", 3, "dim")

    # ---- Decisions ----

    def _decision(self, decision: e.Decision) -> Iterator[TextLine]:
        style = "bold red" if decision.kind == "drop" else "bold green"
        yield TextLine(f"=> {decision_text(decision)}", 1, style, decision.source)
        if decision.kind == "sent":
            frame = decision.frame if self._whole else decision.frame[:_FRAME_SHOWN]
            for at in range(0, len(frame), _BYTES_A_LINE):
                yield TextLine(f"{at:04x}  {frame[at : at + _BYTES_A_LINE].hex(' ', 2)}", 2)
            if len(frame) < len(decision.frame):
                yield TextLine(f"... {len(decision.frame) - len(frame)} more bytes", 2, "dim")


def _title(stage: e.TraceStage) -> str:
    title = _TITLES[stage.name]
    if stage.name == "parse":
        if stage.cause == "arrived":
            return f"{title}  port {stage.port}"
        after = {"clone": "clone of ingress", "resubmit": "resubmitted", "recirculate": "recirculated"}[stage.cause]
        return f"{title}  {after}, {_count(len(stage.frame), 'byte')}"
    if stage.name == "egress":
        copies = {"unicast": "", "multicast": ", copy of a multicast group", "clone": ", clone"}[stage.cause]
        instance = f", instance {stage.instance}" if stage.cause != "unicast" else ""
        return f"{title}  port {stage.port}{copies}{instance}"
    return title


def table_outcome(table: e.TableApplication) -> str:
    """Return which entry it was, or that there was none."""
    if table.entry is None:
        return "miss: default action" if table.key else "no key: default action"
    entry = table.entry
    parts = [f"{p.name}: {match_text(m, p.name)}" for p, m in zip(table.key, entry.match, strict=True)]
    text = f"hit: {', '.join(parts)}"
    if entry.priority is not None:
        text += f", priority {entry.priority}"
    if entry.group is not None:
        text += f", group {entry.group}"
    if entry.member is not None:
        text += f", member {entry.member}"
    return text


def decision_text(decision: e.Decision) -> str:
    copies = _count(decision.copies or 0, "copy", "copies")
    if decision.kind == "to_port":
        return f"to port {decision.number}"
    if decision.kind == "to_group":
        return f"to multicast group {decision.number}: {copies}"
    if decision.kind == "clone":
        if not decision.copies:
            return f"no clone: there is no clone session {decision.number}"
        return f"clone session {decision.number}: {copies}"
    if decision.kind == "drop":
        return f"dropped: {decision.reason}"
    if decision.kind == "sent":
        return f"sent by port {decision.number}, {_count(len(decision.frame), 'byte')}"
    return {"resubmit": "resubmitted to the parser", "recirculate": "recirculated to the parser"}[decision.kind]


def _request_text(request: Request) -> str:
    if request.request == "clone":
        return f"clone to session {request.argument}"
    if request.request == "truncate":
        return f"truncate to {_count(request.argument or 0, 'byte')}"
    return request.request


def cell_text(use: e.CellUse) -> str:
    where = f"{use.array} {use.name}[{use.index}]"
    if use.old is None:
        return where
    if isinstance(use.old, tuple):
        counts = use.new if isinstance(use.new, tuple) else use.old
        return f"{where}: {_count(counts[0], 'packet')}, {_count(counts[1], 'byte')}"
    old = value_text(use.old, use.width, use.name)
    if use.new is None:
        return f"{where} is {old}"
    assert isinstance(use.new, int)
    return f"{where}: {old} -> {value_text(use.new, use.width, use.name)}"


def _hexadecimal(data: bytes) -> str:
    return data.hex() if len(data) <= _BYTES_SHOWN else f"{data[:_BYTES_SHOWN].hex()}... ({len(data)} bytes)"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


# ---- What decided: transitions, conditions, tables, registers and ways out ----


def decisions(trace: e.Trace, sources: SourceMap) -> list[str]:
    """Return a line for each decision, in order, with its place in the source in front where that is known."""
    return [
        f"{source}  {text}" if source is not None else text
        for stage in trace.stages
        for text, source in _of_stage(stage, sources)
    ]


def _of_stage(stage: e.TraceStage, sources: SourceMap) -> Iterator[tuple[str, Source | None]]:
    for event in stage.events:
        if isinstance(event, e.ParserState):
            if event.error is not None:
                yield f"parser state {event.name} fails: error.{event.error}", event.source
            elif event.select:
                values = ", ".join(f"{f.name} = {value_text(f.value, f.width, f.name)}" for f in event.select)
                yield f"parser state {event.name}: {values} -> {event.following}", event.source
        elif isinstance(event, e.Branch):
            line = sources.line(event.source) if event.source is not None else None
            text = line.removeprefix("}").removesuffix("{").strip() if line else f"if ({event.text})"
            operands = ", ".join(f"{f.name} = {value_text(f.value, f.width, f.name)}" for f in event.operands)
            yield f"{text}  is {str(event.outcome).lower()}{f': {operands}' if operands else ''}", event.source
        elif isinstance(event, e.TableApplication):
            arguments = ", ".join(f"{a.name} = {value_text(a.value, a.width, a.name)}" for a in event.arguments)
            action = f"action {event.action}({arguments})" if event.action is not None else "no action"
            yield f"table {event.name}: {table_outcome(event)}, {action}", event.source
            for statement in event.statements:
                yield from _cells(statement)
        elif isinstance(event, e.ExecutedStatement):
            yield from _cells(event)
        elif isinstance(event, e.DigestMade):
            yield f"digest {event.name} to the controller", None
    for decision in stage.decisions:
        yield f"=> {decision_text(decision)}", decision.source


def _cells(statement: e.ExecutedStatement) -> Iterator[tuple[str, Source | None]]:
    for use in statement.cells:
        if use.array == "register":
            yield cell_text(use), statement.source
