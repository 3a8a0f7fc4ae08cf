"""What decided about a packet: of a trace the transitions, conditions, tables, registers and ways out alone."""

from __future__ import annotations

from collections.abc import Iterator

from gradbed.switch.bmv2_json.model import Source
from gradbed.switch.insight.source import SourceMap
from gradbed.switch.insight.trace import events as e
from gradbed.switch.insight.trace.text import cell_text, decision_text, table_outcome
from gradbed.switch.insight.trace.values import value_text


def decisions(trace: e.Trace, sources: SourceMap) -> list[str]:
    """One line each, in order, with its place in the source in front where that is known."""
    return [
        f"{source}  {text}" if source is not None else text
        for stage in trace.stages
        for text, source in _of_stage(stage, sources)
    ]


def _of_stage(stage: e.Stage, sources: SourceMap) -> Iterator[tuple[str, Source | None]]:
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
        elif isinstance(event, e.Statement):
            yield from _cells(event)
        elif isinstance(event, e.DigestMade):
            yield f"digest {event.name} to the controller", None
    for decision in stage.decisions:
        yield f"=> {decision_text(decision)}", decision.source


def _cells(statement: e.Statement) -> Iterator[tuple[str, Source | None]]:
    for use in statement.cells:
        if use.array == "register":
            yield cell_text(use), statement.source
