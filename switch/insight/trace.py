"""The trace of a packet in one switch, made of what its program recorded."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.model import Source
from gradbed.switch.codegen.emit import probes as p
from gradbed.switch.engine.abi import DROP_PORT
from gradbed.switch.insight import trace_events as e
from gradbed.switch.insight.packet_state import Change, FieldChange, PacketState, Places, ValidityChange
from gradbed.switch.insight.recorder import (
    Begin,
    CellAfter,
    CellBefore,
    Changes,
    End,
    InstrumentedProgram,
    Lookup,
    Record,
    RecordedEntry,
    Step,
)
from gradbed.switch.insight.source import Describer, SourceMap, leaves

# simple_switch's instance types that begin with a parser.
_CLONE, _RECIRCULATED, _RESUBMITTED = 1, 4, 6
_EGRESS_CLONE, _REPLICATED = 2, 5


def is_hidden(table: str) -> bool:
    """Return whether a compiler made the table, of a statement in an apply block."""
    return table.startswith("tbl_")


def build_trace(
    program: InstrumentedProgram,
    sources: SourceMap,
    port: int,
    frame: bytes,
    records: Sequence[Record],
    outputs: Sequence[tuple[int, bytes]],
) -> e.Trace:
    """Return the trace of a frame that arrived at `port`; `outputs` is what left meanwhile, in order."""
    builder = _TraceBuilder(program, sources, frame, outputs)
    for record in records:
        builder.take(record)
    builder.finish()
    return e.Trace(program.model.name, port, frame, tuple(builder.stages), tuple(outputs))


class _TraceBuilder:
    def __init__(
        self,
        program: InstrumentedProgram,
        sources: SourceMap,
        frame: bytes,
        outputs: Sequence[tuple[int, bytes]],
    ) -> None:
        self.stages: list[e.TraceStage] = []
        self._model = program.model
        self._sources = sources
        self._places = Places(program.model, program.layout)
        self._arrays = {
            "register": list(program.model.registers),
            "counter": program.model.indirect_counters,
            "meter": program.model.indirect_meters,
        }
        self._errors = {number: name for name, number in program.model.errors.items()}
        self._frame = frame
        self._outputs: dict[int, list[bytes]] = defaultdict(list)
        for port, sent in outputs:
            self._outputs[port].append(sent)
        self._state = PacketState(self._places, ())
        self._last_of_packet: dict[int, int] = {}
        self._offset = 0
        self._cells: list[e.CellUse] = []
        self._table: e.TableApplication | None = None
        self._drop: tuple[str, Source | None] | None = None

    @property
    def _stage(self) -> e.TraceStage:
        return self.stages[-1]

    def take(self, record: Record) -> None:
        if isinstance(record, Begin):
            self._begin(record)
        elif isinstance(record, End):
            self._end(record)
        elif isinstance(record, Lookup):
            self._lookup(record)
        elif isinstance(record, CellBefore):
            value = self._cell(record.kind, record.words)
            name = self._arrays[record.kind][record.array]
            width = self._model.registers[name].width if record.kind == "register" else 0
            self._cells.append(e.CellUse(record.kind, name, record.index, width, value, None))
        elif isinstance(record, CellAfter):
            use = self._cells[-1]
            self._cells[-1] = dataclasses.replace(use, new=self._cell(use.array, record.words))
        else:
            self._step(record)

    # ---- Stages ----

    def _begin(self, record: Begin) -> None:
        assert isinstance(record.site, p.ProbeStage)
        self._state = PacketState(self._places, record.state)
        parent, cause = self._origin(record, record.site.name)
        name = record.site.name
        port = self._state.standard("egress_port" if name in ("egress", "deparse") else "ingress_port")
        stage = e.TraceStage(record.number, name, parent, cause, port)
        if name == "egress":
            stage.instance = self._state.standard("egress_rid")
        if name == "parse":
            stage.frame = self._frame if cause == "arrived" else self._frame_of(parent)
        self.stages.append(stage)
        self._offset, self._cells, self._table, self._drop = 0, [], None, None
        self._last_of_packet[record.packet] = record.number

    def _origin(self, record: Begin, name: str) -> tuple[int | None, str]:
        if name == "parse":
            if record.instance_type == _CLONE:
                return self._stage.number, "clone"
            if record.instance_type in (_RECIRCULATED, _RESUBMITTED):
                cause = "recirculate" if record.instance_type == _RECIRCULATED else "resubmit"
                return self._last_of_packet.get(record.packet), cause
            return None, "arrived"
        if name != "egress":
            return record.parent, "continued"
        parent = self._by_number(record.parent)
        if record.instance_type == _EGRESS_CLONE or (parent is not None and parent.name == "parse"):
            return record.parent, "clone"
        return record.parent, "multicast" if record.instance_type == _REPLICATED else "unicast"

    def _by_number(self, number: int | None) -> e.TraceStage | None:
        return next((stage for stage in self.stages if stage.number == number), None)

    def _frame_of(self, number: int | None) -> bytes:
        """Return the frame that an earlier stage worked on or made."""
        stage = self._by_number(number)
        while stage is not None and not stage.frame:
            stage = self._by_number(stage.parent)
        return stage.frame if stage is not None else b""

    def _end(self, record: End) -> None:
        self._state = PacketState(self._places, record.state)
        stage = self._stage
        if stage.name == "deparse":
            stage.frame = record.frame
            return
        if stage.name == "parse":
            return
        if self._state.request("clone"):
            stage.decisions.append(e.Decision("clone", self._state.request("clone_session")))
        if stage.name == "ingress" and self._state.request("resubmit"):
            stage.decisions.append(e.Decision("resubmit"))
        elif stage.name == "ingress" and self._state.standard("mcast_grp"):
            stage.decisions.append(e.Decision("to_group", self._state.standard("mcast_grp")))
        elif self._state.standard("egress_spec") == DROP_PORT:
            reason, source = self._drop or ("egress_spec is the drop port", None)
            stage.decisions.append(e.Decision("drop", reason=reason, source=source))
        elif stage.name == "ingress":
            stage.decisions.append(e.Decision("to_port", self._state.standard("egress_spec")))
        if stage.name == "egress" and self._state.request("recirculate"):
            stage.decisions.append(e.Decision("recirculate"))

    def finish(self) -> None:
        """Fill in what became of each copy, now that all stages are known."""
        children: dict[int, list[e.TraceStage]] = defaultdict(list)
        for stage in self.stages:
            if stage.parent is not None:
                children[stage.parent].append(stage)
        for stage in self.stages:
            stage.decisions = [self._followed(d, stage, children) for d in stage.decisions]
            if stage.name == "deparse":
                self._departure(stage)

    def _followed(
        self, decision: e.Decision, stage: e.TraceStage, children: dict[int, list[e.TraceStage]]
    ) -> e.Decision:
        after = children[stage.number]
        if decision.kind == "to_port":
            if any(child.cause == "unicast" for child in after):
                return decision
            return e.Decision("drop", reason=f"the switch has no port {decision.number}")
        if decision.kind == "to_group":
            copies = sum(child.cause == "multicast" for child in after)
            if copies:
                return e.Decision("to_group", decision.number, copies)
            return e.Decision("drop", reason=f"multicast group {decision.number} has no ports")
        if decision.kind == "clone":
            # A clone of ingress is parsed first, and its copies come from there.
            parsed = [child.number for child in after if child.cause == "clone" and child.name == "parse"]
            numbers = parsed or [stage.number]
            copies = sum(c.cause == "clone" and c.name == "egress" for number in numbers for c in children[number])
            return e.Decision("clone", decision.number, copies)
        return decision

    def _departure(self, stage: e.TraceStage) -> None:
        before = self._by_number(stage.parent)
        if before is not None and any(d.kind == "recirculate" for d in before.decisions):
            return
        waiting = self._outputs[stage.port]
        if waiting:
            frame = waiting.pop(0)
            stage.decisions.append(e.Decision("sent", stage.port, frame=frame))
        else:
            reason = "no bytes are left" if not stage.frame else f"it did not leave port {stage.port}"
            stage.decisions.append(e.Decision("drop", reason=reason))

    # ---- Steps ----

    def _step(self, record: Step) -> None:
        site = record.site
        if isinstance(site, p.StateEntered):
            self._offset = record.offset
            self._stage.events.append(e.ParserState(site.state, self._sources.of(site), record.offset))
        elif isinstance(site, p.OperationDone):
            self._operation(site, record)
        elif isinstance(site, p.TransitionTaken):
            self._transition(site, record)
        elif isinstance(site, p.ParserDone):
            self._parser_done(record)
        elif isinstance(site, p.ChecksumDone):
            checksum = self._model.checksums[site.index]
            changes = self._update(record.changes)
            target = Describer(self._places).text(checksum.target)
            task = "verify" if checksum.verify else "update"
            self._stage.events.append(e.ChecksumStep(task, target, self._sources.of(site), changes))
        elif isinstance(site, p.BranchTaken):
            self._branch(site)
        elif isinstance(site, p.CallMade):
            self._call(site)
        elif isinstance(site, p.PrimitiveDone):
            action = self._model.actions[site.action_id]
            self._statement(site, action.primitives[site.index], action, record.changes)
        elif isinstance(site, p.DeparserPrimitiveDone):
            self._statement(site, self._model.deparser_primitives[site.index], None, record.changes)
        elif isinstance(site, p.HeaderEmitted):
            self._stage.events.append(e.Emitted(site.header))
        elif isinstance(site, p.DigestSent):
            self._stage.events.append(e.DigestMade(self._model.digests[site.id].name))

    def _update(self, changes: Changes) -> tuple[Change, ...]:
        return tuple(self._state.update(changes))

    # ---- Parser ----

    @property
    def _parser_state(self) -> e.ParserState:
        state = self._stage.events[-1]
        assert isinstance(state, e.ParserState)
        return state

    def _operation(self, site: p.OperationDone, record: Step) -> None:
        operation = self._model.parser.states[site.state].operations[site.index]
        changes = self._update(record.changes)
        executed = self._executed(operation, self._sources.of(site))
        executed.data = self._stage.frame[self._offset : record.offset]
        self._offset = record.offset
        if isinstance(operation, m.Extract):
            executed.header = self._extracted(operation.header, changes)
            executed.fields = self._fields(executed.header) if executed.header else ()
        else:
            executed.changes = changes
        self._parser_state.operations.append(executed)

    def _executed(self, operation: m.ParserOperation, source: Source | None) -> e.ExecutedOperation:
        kinds = {m.Extract: "extract", m.Assign: "set", m.Verify: "verify", m.Advance: "advance"}
        op = operation.op if isinstance(operation, m.Primitive) else kinds[type(operation)]
        text = source.fragment if source else Describer(self._places).operation(operation)
        return e.ExecutedOperation(op, text, source)

    def _extracted(self, reference: ex.HeaderReference, changes: tuple[Change, ...]) -> str | None:
        if isinstance(reference, ex.NamedHeader):
            return reference.name
        if isinstance(reference, ex.StackElement):
            return self._state.element(reference.stack, None)
        return next((c.header for c in changes if isinstance(c, ValidityChange) and c.valid), None)

    def _fields(self, header: str) -> tuple[e.FieldValue, ...]:
        fields = self._model.headers[header].type.fields
        return tuple(
            e.FieldValue(self._places.field_name(header, i), field.width, self._state.field(header, i))
            for i, field in enumerate(fields)
        )

    def _transition(self, site: p.TransitionTaken, record: Step) -> None:
        state, entered = self._model.parser.states[site.state], self._parser_state
        taken = state.transitions[site.index] if site.index is not None else None
        entered.following = (taken.next_state if taken else None) or "accept"
        entered.transition_source = self._sources.of(site)
        if not state.key:
            return
        entered.select = tuple(
            value
            for part, width in zip(state.key, state.key_widths, strict=True)
            if (value := self._select_value(part, width, record.offset)) is not None
        )
        entered.case = case_text(taken, state.key_widths)

    def _select_value(self, part: ex.Data, width: int, offset: int) -> e.FieldValue | None:
        if isinstance(part, ex.Lookahead):
            frame = self._stage.frame[offset:]
            bits = int.from_bytes(frame, "big") >> max(0, len(frame) * 8 - part.offset - part.width)
            return e.FieldValue("lookahead", width, bits & ((1 << part.width) - 1))
        found = self._state.value(part)
        return e.FieldValue(*found) if found else None

    def _parser_done(self, record: Step) -> None:
        self._update(record.changes)
        error = self._state.standard("parser_error")
        states = [event for event in self._stage.events if isinstance(event, e.ParserState)]
        if not states or states[-1].following:
            return
        last = states[-1]
        last.error = self._errors.get(error, str(error))
        last.following = "reject"
        operations = self._model.parser.states[last.name].operations
        failed = len(last.operations)
        if failed < len(operations):
            source = self._sources.of(p.OperationDone(last.name, failed))
            operation = self._executed(operations[failed], source)
            operation.failed = True
            last.operations.append(operation)

    # ---- Controls ----

    def _branch(self, site: p.BranchTaken) -> None:
        self._table = None
        node = self._model.pipelines[site.pipeline].nodes[site.node]
        assert isinstance(node, m.ConditionalStep)
        source = self._sources.of(site)
        text = source.fragment if source else Describer(self._places).text(node.expression)
        operands = []
        for leaf in leaves(node.expression):
            if isinstance(leaf, ex.IsValid):
                name = Describer(self._places).header(leaf.header)
                if isinstance(leaf.header, ex.NamedHeader):
                    operands.append(e.FieldValue(f"{name}.isValid()", 0, int(self._state.is_valid(leaf.header.name))))
                continue
            found = self._state.value(leaf)
            if found:
                operands.append(e.FieldValue(*found))
        self._stage.events.append(e.Branch(source, text, site.outcome, tuple(operands)))

    def _call(self, site: p.CallMade) -> None:
        self._table = None
        table = self._model.tables.get(site.node)
        if table is None or is_hidden(table.name):
            return
        source = self._sources.of(p.TableApplied(table.name))
        call = table.default
        arguments = self._arguments(self._model.actions[site.action_id], call.arguments if call else ())
        self._open_table(e.TableApplication(table.name, source, (), False, None, *arguments))

    def _lookup(self, record: Lookup) -> None:
        table = self._model.tables[record.site.table]
        entry = record.entry
        changes = self._update(record.changes)
        action = self._model.actions[entry.action_id] if entry.action_id is not None else None
        key = tuple(
            e.KeyPart(part.name or f"key {i}", part.match, part.width, value)
            for i, (part, value) in enumerate(zip(table.key, record.key, strict=True))
        )
        applied = e.TableApplication(
            table.name,
            self._sources.of(record.site),
            key,
            record.hit,
            matched_entry(table, entry) if record.hit else None,
            *self._arguments(action, entry.arguments),
            counted=(entry.packets, entry.bytes) if table.with_counters else None,
            changes=changes,
        )
        self._open_table(applied)

    def _open_table(self, table: e.TableApplication) -> None:
        self._stage.events.append(table)
        self._table = table

    def _arguments(
        self, action: m.Action | None, values: Sequence[int]
    ) -> tuple[str | None, Source | None, tuple[e.FieldValue, ...]]:
        if action is None:
            return None, None, ()
        arguments = zip(action.parameters, values, strict=True)
        return (
            action.name,
            self._sources.action(action.id),
            tuple(e.FieldValue(parameter.name, parameter.width, value) for parameter, value in arguments),
        )

    def _statement(self, site: p.Site, primitive: m.Primitive, action: m.Action | None, changes: Changes) -> None:
        written = self._update(changes)
        source = self._sources.of(site)
        names = tuple(parameter.name for parameter in action.parameters) if action else ()
        text = source.fragment if source else Describer(self._places, names).primitive(primitive)
        statement = e.ExecutedStatement(source, text, written, tuple(self._cells))
        self._cells = []
        for change in written:
            if isinstance(change, FieldChange) and change.name == "standard_metadata.egress_spec":
                self._drop = (text, source) if change.new == DROP_PORT else None
        (self._table.statements if self._table else self._stage.events).append(statement)

    def _cell(self, kind: str, words: Sequence[int]) -> int | tuple[int, int] | None:
        if kind == "register":
            return sum(word << 64 * i for i, word in enumerate(words))
        return (words[0], words[1]) if kind == "counter" else None


def case_text(taken: m.StateTransition | None, widths: Sequence[int]) -> str:
    """Return the text of a select's case: values and masks in hexadecimal, "default", or a value set's name."""
    if taken is None:
        return "none"
    if taken.value_set is not None:
        return taken.value_set
    if taken.value is None or taken.mask is None:
        return "default"
    parts = []
    shift = sum(widths)
    for width in widths:
        shift -= width
        full = (1 << width) - 1
        value, mask = taken.value >> shift & full, taken.mask >> shift & full
        digits = (width + 3) // 4
        if mask == 0 and width:
            parts.append("_")
        else:
            masked = "" if mask == full else f" &&& 0x{mask:0{digits}x}"
            parts.append(f"0x{value:0{digits}x}{masked}")
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def matched_entry(table: m.Table, entry: RecordedEntry) -> e.MatchedEntry:
    parts = []
    for part, match in zip(table.key, entry.match, strict=True):
        if part.match == "lpm":
            bits = match.mask.bit_count()
            parts.append(e.EntryPart("lpm", part.width, match.value, prefix_bits=bits))
        elif part.match == "range":
            assert match.low is not None
            parts.append(e.EntryPart("range", part.width, match.low, high=match.high))
        elif part.match == "ternary":
            parts.append(e.EntryPart("ternary", part.width, match.value, mask=match.mask))
        else:
            parts.append(e.EntryPart("exact", part.width, match.value))
    has_priority = table.match in ("ternary", "range")
    return e.MatchedEntry(tuple(parts), entry.priority if has_priority else None, entry.member, entry.group)
