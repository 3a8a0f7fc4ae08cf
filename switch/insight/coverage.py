"""What of a program a workload has reached: states, transitions, tables, entries, actions, branches, statements.

A workload is frames at a port of a switch that was set up, an STF file, or the packets in all switches of a network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError
from gradbed.switch.bmv2_json.model import ConditionalStep, ProgramModel, Source, Table
from gradbed.switch.codegen.emit import probes as p
from gradbed.switch.insight.packet_state import Places
from gradbed.switch.insight.recorder import (
    InstrumentedProgram,
    Level,
    Lookup,
    Record,
    RecordedEntry,
    Step,
    SwitchPass,
)
from gradbed.switch.insight.source import Describer, SourceMap
from gradbed.switch.insight.trace import case_text, is_hidden, matched_entry
from gradbed.switch.insight.trace_events import match_text
from gradbed.switch.insight.traced_switch import TracedSwitch
from gradbed.switch.stf.runner import Outcome, absent_port, run_on
from gradbed.switch.stf.statements import Packet, Script, StfStatement

# ---- One program ----


_STANDARD_FILES = ("core.p4", "v1model.p4")


@dataclass(frozen=True)
class CoverageItem:
    """Something that packets may reach."""

    name: str
    source: Source | None
    hits: int
    """Packets that reached it."""


@dataclass(frozen=True)
class CoveredLine:
    """A source line with code."""

    hits: int
    """Packets that reached its most visited part."""
    missed: tuple[str, ...]
    """What on the line no packet reached."""

    @property
    def state(self) -> str:
        """reached, partly or unreached."""
        return "unreached" if not self.hits else "partly" if self.missed else "reached"


@dataclass
class Report:
    """Coverage of a program."""

    program: str
    packets: int
    items: dict[str, list[CoverageItem]]
    """Items by category, in the program's order."""
    lines: dict[str, dict[int, CoveredLine]] = field(default_factory=dict)
    """Lines with code, by file and number."""

    def reached(self, category: str) -> tuple[int, int]:
        """Return how many were reached, of how many."""
        items = self.items[category]
        return sum(item.hits > 0 for item in items), len(items)

    def to_json(self) -> dict[str, Any]:
        categories = {}
        for name, items in self.items.items():
            reached, total = self.reached(name)
            categories[name] = {
                "reached": reached,
                "total": total,
                "percent": percent(reached, total),
                "items": [
                    {
                        "name": item.name,
                        "hits": item.hits,
                        "file": item.source.file if item.source else None,
                        "line": item.source.line if item.source else None,
                    }
                    for item in items
                ],
            }
        lines = {
            file: {
                str(n): {"hits": line.hits, "state": line.state, "missed": line.missed}
                for n, line in sorted(of.items())
            }
            for file, of in self.lines.items()
        }
        return {"program": self.program, "packets": self.packets, "categories": categories, "lines": lines}


def percent(reached: int, total: int) -> float | None:
    """Return a percentage to one decimal; None of nothing."""
    return round(100 * reached / total, 1) if total else None


@dataclass(frozen=True)
class _Table:
    """A table was applied."""

    name: str


@dataclass(frozen=True)
class _TableHits:
    name: str
    hit: bool


@dataclass(frozen=True)
class _TableRuns:
    name: str
    action_id: int | None


@dataclass(frozen=True)
class _Action:
    name: str


class Coverage:
    """Collects from any number of packets and switches that run the same program."""

    def __init__(self, program: InstrumentedProgram, sources: SourceMap) -> None:
        self._program = program
        self._sources = sources
        self._places = Places(program.model, program.layout)
        self._packets = 0
        self._hits: Counter[Hashable] = Counter()
        self._entries: dict[Any, RecordedEntry] = {}
        # What compilers make of one construct (inlined controls, expanded ranges and macros) is one thing here.
        self._constructs = {site: self._construct(site) for site in program.sites}

    def _construct(self, site: p.Site) -> Hashable:
        source = self._sources.of(site)
        if source is None or isinstance(site, (p.TableApplied, p.CallMade)):
            return site
        way = (site.outcome,) if isinstance(site, p.BranchTaken) else ()
        return type(site), source, *way

    def see_entries(self, entries: Iterable[RecordedEntry]) -> None:
        """Take in entries that could be hit from now on."""
        for entry in entries:
            self._entries.setdefault(entry.identity, entry)

    def see_packet(self, records: Sequence[Record]) -> None:
        """Count what one packet that arrived led to, all its copies and rounds together."""
        self._packets += 1
        reached: set[Hashable] = set()
        for record in records:
            if isinstance(record, Step):
                reached.add(self._constructs[record.site])
                if isinstance(record.site, p.CallMade):
                    reached |= {_Table(record.site.node), self._action(record.site.action_id)}
            elif isinstance(record, Lookup):
                table, entry = record.site.table, record.entry
                reached |= {_Table(table), _TableHits(table, record.hit), _TableRuns(table, entry.action_id)}
                if entry.action_id is not None:
                    reached.add(self._action(entry.action_id))
                if record.hit:
                    self._entries.setdefault(entry.identity, entry)
                    reached.add(entry.identity)
        self._hits.update(reached)

    def _action(self, action_id: int) -> Hashable:
        return _Action(self._program.model.actions[action_id].name)

    def report(self) -> Report:
        statements = self._statements()
        items = {
            "parser states": self._states(),
            "transitions": self._transitions(),
            "tables": self._tables(),
            "table entries": self._table_entries(),
            "actions": self._action_items(statements),
            "branches": self._branches(),
            "statements": statements,
        }
        return Report(self._program.model.name, self._packets, items, _lines(items))

    def _states(self) -> list[CoverageItem]:
        return [
            CoverageItem(site.state, self._sources.of(site), self._hits[self._constructs[site]])
            for site in self._program.sites
            if isinstance(site, p.StateEntered)
        ]

    def _transitions(self) -> list[CoverageItem]:
        items = []
        for site in self._program.sites:
            if not isinstance(site, p.TransitionTaken) or site.index is None:
                continue
            state = self._program.model.parser.states[site.state]
            taken, source = state.transitions[site.index], self._sources.of(site)
            case = f" {case_text(taken, state.key_widths)}" if state.key else ""
            name = f"{site.state}{case} -> {taken.next_state or 'accept'}"
            if source:
                name = f"{site.state}: {source.fragment.removesuffix(';')}"
            items.append(CoverageItem(name, source, self._hits[self._constructs[site]]))
        return _merged(items)

    def _tables(self) -> list[CoverageItem]:
        return [
            CoverageItem(table.name, self._sources.of(p.TableApplied(table.name)), self._hits[_Table(table.name)])
            for table in self._user_tables()
        ]

    def _user_tables(self) -> list[Table]:
        return [table for table in self._program.model.tables.values() if not is_hidden(table.name)]

    def _table_entries(self) -> list[CoverageItem]:
        order = {name: number for number, name in enumerate(self._program.model.tables)}
        items = []
        for identity, entry in sorted(self._entries.items(), key=lambda pair: order[pair[1].table]):
            table = self._program.model.tables[entry.table]
            matched = matched_entry(table, entry)
            parts = [
                f"{part.name}: {match_text(match, part.name)}"
                for part, match in zip(table.key, matched.match, strict=True)
            ]
            if matched.priority is not None:
                parts.append(f"priority {matched.priority}")
            source = self._sources.of(p.TableApplied(entry.table))
            items.append(CoverageItem(f"{entry.table} {', '.join(parts)}", source, self._hits[identity]))
        return items

    def _action_items(self, statements: Sequence[CoverageItem]) -> list[CoverageItem]:
        """Return those that tables name. One that is called directly runs as a copy: its first statement tells."""
        by_source = {statement.source: statement.hits for statement in statements}
        items: dict[str, CoverageItem] = {}
        for action in [action for table in self._user_tables() for action in table.actions]:
            first = self._sources.of(p.PrimitiveDone(action.id, 0))
            hits = max(self._hits[_Action(action.name)], by_source.get(first, 0) if first else 0)
            items.setdefault(action.name, CoverageItem(action.name, self._sources.action(action.id), hits))
        return list(items.values())

    def _branches(self) -> list[CoverageItem]:
        items = []
        for site in self._program.sites:
            if isinstance(site, p.BranchTaken):
                source = self._sources.of(site)
                node = self._program.model.pipelines[site.pipeline].nodes[site.node]
                assert isinstance(node, ConditionalStep)
                text = source.fragment if source else Describer(self._places).text(node.expression)
                hits = self._hits[self._constructs[site]]
                items.append(CoverageItem(f"{text} is {str(site.outcome).lower()}", source, hits))
        return _merged([*items, *(item for table in self._user_tables() for item in self._table_branches(table))])

    def _table_branches(self, table: Table) -> list[CoverageItem]:
        """Return where the program goes on differently after a hit and a miss, or after one action and another."""
        source = self._sources.of(p.TableApplied(table.name))
        items = []
        if table.next_hit != table.next_miss:
            for hit, what in ((True, "hits"), (False, "misses")):
                items.append(CoverageItem(f"{table.name} {what}", source, self._hits[_TableHits(table.name, hit)]))
        if len(set(table.next_by_action.values())) > 1:
            for action in table.actions:
                hits = self._hits[_TableRuns(table.name, action.id)]
                items.append(CoverageItem(f"{table.name} runs {action.name}", source, hits))
        return items

    def _statements(self) -> list[CoverageItem]:
        """Return the statements of parser states, actions, checksums and deparser."""
        items = []
        for site in self._program.sites:
            text = self._statement_text(site)
            if text is not None:
                source = self._sources.of(site)
                hits = self._hits[self._constructs[site]]
                items.append(CoverageItem(source.fragment if source else text, source, hits))
        return _merged(items)

    def _statement_text(self, site: p.Site) -> str | None:
        model = self._program.model
        if isinstance(site, p.PrimitiveDone):
            action = model.actions[site.action_id]
            names = tuple(parameter.name for parameter in action.parameters)
            return f"{action.name}: {Describer(self._places, names).primitive(action.primitives[site.index])}"
        if isinstance(site, p.DeparserPrimitiveDone):
            return Describer(self._places).primitive(model.deparser_primitives[site.index])
        if isinstance(site, p.ChecksumDone):
            checksum = model.checksums[site.index]
            task = "verify" if checksum.verify else "update"
            return f"{task}_checksum of {Describer(self._places).text(checksum.target)}"
        if isinstance(site, p.OperationDone):
            operation = model.parser.states[site.state].operations[site.index]
            return f"{site.state}: {Describer(self._places).operation(operation)}"
        return None


def _merged(items: Sequence[CoverageItem]) -> list[CoverageItem]:
    """Return each construct of the source once."""
    merged: dict[Any, CoverageItem] = {}
    for number, item in enumerate(items):
        merged.setdefault((item.name, item.source) if item.source else number, item)
    return list(merged.values())


def _lines(items: dict[str, list[CoverageItem]]) -> dict[str, dict[int, CoveredLine]]:
    parts: dict[tuple[str, int], list[CoverageItem]] = {}
    for category, of_category in items.items():
        for item in of_category:
            # Entries have the source of their table; NoAction is declared in core.p4.
            if item.source and category != "table entries" and item.source.file not in _STANDARD_FILES:
                parts.setdefault((item.source.file, item.source.line), []).append(item)
    lines: dict[str, dict[int, CoveredLine]] = {}
    for (file, number), of_line in parts.items():
        missed = tuple(item.name for item in of_line if not item.hits)
        lines.setdefault(file, {})[number] = CoveredLine(max(item.hits for item in of_line), missed)
    return lines


# ---- A whole network ----


class NetworkCoverage:
    """Coverage of switches whose programs are built so that they report (gradbed.switch.insight.recorder)."""

    level = Level.POINTS

    def __init__(self, programs: Mapping[int, InstrumentedProgram], folders: Sequence[Path]) -> None:
        """Cover these programs, by device id; `folders` have the P4 sources."""
        of_program = {
            id(program): Coverage(program, SourceMap(program.model, folders)) for program in programs.values()
        }
        self._coverages = {device_id: of_program[id(program)] for device_id, program in programs.items()}

    def see(self, passes: Iterable[SwitchPass]) -> None:
        for each in passes:
            self._coverages[each.device_id].see_packet(each.records)

    def see_entries(self, device_id: int, entries: Iterable[RecordedEntry]) -> None:
        """Count the entries that a switch has now."""
        self._coverages[device_id].see_entries(entries)

    def reports(self) -> list[Report]:
        """Return a report for each program. Hits are passes of packets through a switch's pipelines."""
        return [coverage.report() for coverage in dict.fromkeys(self._coverages.values())]


# ---- Frames and STF files ----


def cover_frames(
    program: InstrumentedProgram,
    coverage: Coverage,
    port: int,
    frames: Iterable[bytes],
    set_up: Callable[[TracedSwitch], None],
    cpu_port: int,
) -> None:
    """Send frames through a fresh switch, on which `set_up` writes entries and groups first."""
    with TracedSwitch(program, Level.POINTS, cpu_port) as switch:
        set_up(switch)
        _see_entries(switch, coverage)
        for frame in frames:
            coverage.see_packet(switch.send(port, frame).records)


def cover_script(program: InstrumentedProgram, coverage: Coverage, script: Script) -> Outcome:
    """Run an STF file on a fresh switch; its outcome is returned, and does not affect coverage. Raises UserError."""
    wrong = absent_port(script)
    if wrong is not None:
        raise UserError(wrong)
    cpu_port = next(port for port in range(510, -1, -1) if port not in script.ports)
    with TracedSwitch(program, Level.POINTS, cpu_port) as switch:
        outcome = run_on(_CoveredTarget(switch, coverage), script)
    if outcome.misfit is not None:
        raise UserError(outcome.misfit)
    return outcome


def _see_entries(switch: TracedSwitch, coverage: Coverage) -> None:
    for table in switch.program.model.tables:
        coverage.see_entries(switch.entries(table))


class _CoveredTarget:
    """A gradbed.switch.stf.target.Target that watches."""

    def __init__(self, switch: TracedSwitch, coverage: Coverage) -> None:
        self._switch = switch
        self._coverage = coverage
        self._changed = True
        self._outputs: list[tuple[int, bytes]] = []

    def apply(self, statement: StfStatement) -> None:
        self._switch.target.apply(statement)
        self._changed = True

    @property
    def model(self) -> ProgramModel:
        return self._switch.program.model

    def send(self, packet: Packet) -> None:
        # Commands come in blocks: what the entries are matters when a packet comes.
        self._see_entries()
        passage = self._switch.send(packet.port, packet.frame)
        self._coverage.see_packet(passage.records)
        self._outputs += passage.outputs

    def drain(self) -> list[tuple[int, bytes]]:
        self._see_entries()
        outputs, self._outputs = self._outputs, []
        return outputs

    def _see_entries(self) -> None:
        if self._changed:
            _see_entries(self._switch, self._coverage)
            self._changed = False
