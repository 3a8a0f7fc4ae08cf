"""Actions and match-action pipelines as C: one function for each, with the nodes of a pipeline as labels."""

from __future__ import annotations

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json import model as m
from gradbed.switch.bmv2_json.drop_sites import DropSites
from gradbed.switch.bmv2_json.load_pipelines import successors
from gradbed.switch.bmv2_json.model import words_of
from gradbed.switch.codegen.emit.probes import NO_PROBES, BranchTaken, CallMade, DigestSent, PrimitiveDone, Probes
from gradbed.switch.codegen.emit.statements import Statements
from gradbed.switch.codegen.emit.values import Values
from gradbed.switch.codegen.layout import DIGEST, FRAME_LENGTH, GROWTH, Layout
from gradbed.switch.state.abi import RECENTS

METER_UNIT = {"packets": "GB_METER_PACKETS", "bytes": "GB_METER_BYTES"}

_SIGNATURE = "(struct gb_switch *sw, struct gb_packet *p, const uint64_t *data, uint64_t now)"


def action_function(
    action: m.Action, model: m.ProgramModel, layout: Layout, drops: DropSites, probes: Probes = NO_PROBES
) -> list[str]:
    """Emit `int action_N(...)`, which returns 1 if the packet has to leave the pipeline (exit)."""
    statements = Statements(model, layout, action.parameters, probes=probes)
    body = statements.body(
        action.primitives, lambda index: PrimitiveDone(action.id, index), lambda index: drops.first(action.id, index)
    )
    return [f"static int action_{action.id}{_SIGNATURE} {{", "uint64_t *phv = p->pass->phv;", *body, "return 0;", "}"]


def used_actions(model: m.ProgramModel) -> list[m.Action]:
    """Return the actions that some table or node can call; others are not worth compiling."""
    used: set[int] = set()
    for pipeline in model.pipelines.values():
        for node in pipeline.nodes.values():
            if isinstance(node, m.Table):
                used.update(action.id for action in node.actions)
            elif isinstance(node, m.PipelineActionCall):
                used.add(node.action_id)
    return [action for action in model.actions.values() if action.id in used]


def recent_tables(model: m.ProgramModel) -> dict[str, int]:
    """Number the tables whose last lookup each link keeps (struct gb_recent): the first with keys of one word."""
    of_one_word = [t.name for t in model.tables.values() if sum(words_of(k.width) for k in t.key) == 1]
    return {name: number for number, name in enumerate(of_one_word[:RECENTS])}


class PipelineWriter:
    """Emits pipelines."""

    def __init__(self, model: m.ProgramModel, layout: Layout, drops: DropSites, probes: Probes = NO_PROBES) -> None:
        self.model = model
        self._drops = drops
        self.layout = layout
        self._probes = probes
        self._table_number = {name: i for i, name in enumerate(model.tables)}
        self._recents = recent_tables(model)
        self._profile_number = {name: i for i, name in enumerate(model.profiles)}

    def function(self, name: str) -> list[str]:
        """Emit `void ingress(sw, p)` or `void egress(sw, p)`."""
        pipeline = self.model.pipelines.get(name)
        clock = "ingress_global_timestamp" if name == "ingress" else "egress_global_timestamp"
        lines = [
            f"static void {name}(struct gb_switch *sw, struct gb_packet *p) {{",
            "uint64_t *phv = p->pass->phv;",
            f"uint64_t now = p->pass->std.{clock};",
        ]
        if name == "egress":
            lines.append(f"p->pass->std.packet_length = (phv[{FRAME_LENGTH}] + phv[{GROWTH}]) & 0xffffffffULL;")
        lines.extend(self._probes.begin(name, self.layout.words))
        if pipeline is not None and pipeline.first is not None:
            numbers = {node: i for i, node in enumerate(_reachable(pipeline))}
            loops = _loop_heads(pipeline, numbers)
            if loops:
                lines.append("uint32_t steps = 0;")
            lines.append(_go(pipeline.first, numbers))
            for node, number in numbers.items():
                lines.append(f"node_{number}:;")
                if node in loops:
                    lines.append("if (++steps > GB_MAX_PIPELINE_STEPS) goto done;")
                lines.extend(self._node(name, pipeline.nodes[node], numbers))
        lines.append("done:;")
        if name == "ingress":
            lines.extend(self._digests())
        return [*lines, *self._probes.end(name), "}"]

    def _node(self, pipeline: str, node: m.ControlNode, numbers: dict[str, int]) -> list[str]:
        if isinstance(node, m.ConditionalStep):
            statements = Statements(self.model, self.layout)
            if_true, if_false = (
                self._probes.jump(BranchTaken(pipeline, node.name, outcome), _go(following, numbers))
                for outcome, following in ((True, node.if_true), (False, node.if_false))
            )
            test = statements.statement(lambda: f"if ({statements.values.boolean(node.expression)}) {if_true}")
            return [test, if_false]
        if isinstance(node, m.PipelineActionCall):
            call = f"{self._caller(node.action_id)}if (action_{node.action_id}(sw, p, NULL, now)) goto done;"
            return [*self._probes.at(CallMade(node.name, node.action_id)), call, _go(node.next, numbers)]
        return self._table(node, numbers)

    def _table(self, table: m.Table, numbers: dict[str, int]) -> list[str]:
        if not table.key and table.default is not None and table.default_is_const and not table.with_counters:
            return self._fixed_call(table, table.default, numbers)
        number = self._table_number[table.name]
        lines = ["{", f"struct gb_table *table = sw->tables[{number}];"]
        if table.key:
            lines.extend(self._key(table))
            recent = self._recents.get(table.name)
            found = "gb_table_lookup(table, key)"
            if recent is not None:
                found = f"gb_table_lookup_recent(&sw->recents[{recent}], table, key)"
            lines.append(f"struct gb_entry *entry = {found};")
        else:
            lines.append("struct gb_entry *entry = table->default_entry;")
        if table.has_next_hit or table.has_next_miss or table.direct_meter:
            lines.append("bool hit = entry != table->default_entry;")
        lines.append(self._select(table))
        if table.with_timeouts:
            lines.append("entry->last_hit_us = now;")
        if table.with_counters:
            lines.append(f"gb_count_packet(&entry->count, phv[{FRAME_LENGTH}]);")
        if table.direct_meter:
            lines.append(self._direct_meter(self.model.meters[table.direct_meter]))
        lines.extend(self._probes.table(table.name, number, bool(table.key)))
        lines.extend(self._dispatch(table, numbers))
        return [*lines, "}"]

    def _fixed_call(self, table: m.Table, call: m.ActionEntry, numbers: dict[str, int]) -> list[str]:
        action = self.model.actions[call.action_id]
        words = _call_words(call, action.parameters)
        data = f"(const uint64_t[]){{{', '.join(f'{w:#x}ULL' for w in words)}}}" if words else "NULL"
        following = table.next_miss if table.has_next_miss else table.next_by_action[action.id]
        run = f"{self._caller(action.id, table)}if (action_{action.id}(sw, p, {data}, now)) goto done;"
        return [*self._probes.at(CallMade(table.name, action.id)), run, _go(following, numbers)]

    def _key(self, table: m.Table) -> list[str]:
        """Declare and fill `key`, field after field."""
        total = sum(words_of(k.width) for k in table.key)
        lines = [f"uint64_t key[{max(1, total)}];"]
        at = 0
        for part in table.key:
            mask = (1 << part.width) - 1
            if part.static_mask is not None:
                mask &= part.static_mask
            value = ex.Arithmetic("&", part.value, ex.Constant(mask))
            words = words_of(part.width)
            lines.append(self._fill(value, mask, part, at, words))
            at += words
        return [line for line in lines if line]

    def _fill(self, value: ex.Data, mask: int, part: m.KeyField, at: int, words: int) -> str:
        statements = Statements(self.model, self.layout)

        def emit() -> str:
            values = statements.values
            low, high = values.range(part.value)
            # Unsigned fields hold no bits beyond their width already.
            plain = part.static_mask is None and low >= 0 and high <= mask
            text = values.emit(part.value if plain else value, max(1, words))
            if words <= 1:
                return f"key[{at}] = {text};" if words else ""
            if words == 2:
                return f"gb_store128(&key[{at}], {text});"
            return f"memcpy(&key[{at}], {text}, {words} * sizeof *key);"

        return statements.statement(emit)

    def _select(self, table: m.Table) -> str:
        if table.profile is None or self.model.profiles[table.profile].selector is None:
            return "const struct gb_call *call = entry->call;"
        hash_text = f"selector_{self._profile_number[table.profile]}(sw, p)"
        return f"const struct gb_call *call = entry->group ? gb_select(entry, {hash_text}) : entry->call;"

    def _direct_meter(self, meter: m.Meter) -> str:
        if meter.target is None:
            return ""
        statements = Statements(self.model, self.layout)
        target = meter.target
        unit = METER_UNIT[meter.unit]
        colour = f"gb_meter_mark(entry->meter, {unit}, now, phv[{FRAME_LENGTH}])"
        store = statements.statement(lambda: statements.store_text(target, colour))
        return f"if (hit) {{ {store} }}"

    def _dispatch(self, table: m.Table, numbers: dict[str, int]) -> list[str]:
        """Run the action and go on to the next node."""
        lines = ["switch (call ? call->action : GB_NO_ACTION) {"]
        after: dict[int, str] = {a.id: _go(table.next_by_action[a.id], numbers) for a in table.actions}
        for action in table.actions:
            run = f"{self._caller(action.id, table)}if (action_{action.id}(sw, p, call->data, now)) goto done;"
            lines.append(f"case {action.id}: {run} {self._after(table, after[action.id], numbers)}")
        nothing = _go(table.next_without_action, numbers)
        lines.append(f"default: {self._after(table, nothing, numbers)}")
        return [*lines, "}"]

    def _caller(self, action_id: int, table: m.Table | None = None) -> str:
        """Record who runs an action that may drop the packet; empty for other actions."""
        number = self._drops.caller(action_id, table.name if table is not None else None)
        if number is None:
            return ""
        missed = " + (entry == table->default_entry)" if table is not None and table.key else ""
        return f"sw->drop_caller = {number}u{missed}; "

    @staticmethod
    def _after(table: m.Table, by_action: str, numbers: dict[str, int]) -> str:
        hit = _go(table.next_hit, numbers) if table.has_next_hit else by_action
        miss = _go(table.next_miss, numbers) if table.has_next_miss else by_action
        return hit if hit == miss else f"if (hit) {hit} else {miss}"

    def _digests(self) -> list[str]:
        """Send the digest that ingress asked for last, with the values that its fields have now."""
        if not self.model.digests:
            return []
        lines = [f"switch (phv[{DIGEST}]) {{"]
        for digest in self.model.digests.values():
            lines.append(f"case {digest.id}: {{")
            lines.extend(self._digest(digest))
            lines += ["break;", "}"]
        return [*lines, "}", f"phv[{DIGEST}] = 0;"]

    def _digest(self, digest: m.DigestList) -> list[str]:
        values = Values(self.model, self.layout)
        widths = [values.field_type(e).width if isinstance(e, ex.FieldReference) else 64 for e in digest.elements]
        total = sum(max(1, words_of(w)) for w in widths)
        lines = [f"uint64_t key[{max(1, total)}];"]
        at = 0
        for element, width in zip(digest.elements, widths, strict=True):
            mask = (1 << width) - 1
            words = max(1, words_of(width))
            part = m.KeyField("", "exact", element, width)
            lines.append(self._fill(ex.Arithmetic("&", element, ex.Constant(mask)), mask, part, at, words))
            at += words
        lines.append(f"if (sw->digest) sw->digest(sw, {digest.id}, key, {total});")
        return [*lines, *self._probes.at(DigestSent(digest.id))]


def _go(node: str | None, numbers: dict[str, int]) -> str:
    return "goto done;" if node is None else f"goto node_{numbers[node]};"


def _reachable(pipeline: m.Pipeline) -> list[str]:
    """Return nodes in topological order: control moves down the text, but for the way back to the head of a loop."""
    order: list[str] = []
    seen: set[str] = set()
    path: list[tuple[str, list[str | None]]] = []
    if pipeline.first is not None:
        path.append((pipeline.first, successors(pipeline.nodes[pipeline.first])))
        seen.add(pipeline.first)
    while path:
        name, rest = path[-1]
        if not rest:
            order.append(name)
            path.pop()
            continue
        following = rest.pop()
        if following is not None and following not in seen:
            seen.add(following)
            path.append((following, successors(pipeline.nodes[following])))
    return order[::-1]


def _loop_heads(pipeline: m.Pipeline, numbers: dict[str, int]) -> set[str]:
    """Return the nodes that control comes back to."""
    return {
        following
        for node, number in numbers.items()
        for following in successors(pipeline.nodes[node])
        if following is not None and numbers[following] <= number
    }


def _call_words(call: m.ActionEntry, parameters: tuple[m.ActionParameter, ...]) -> list[int]:
    """Return the arguments of a call as words, argument after argument."""
    words: list[int] = []
    for value, parameter in zip(call.arguments, parameters, strict=True):
        words.extend(value >> (64 * i) & 0xFFFFFFFFFFFFFFFF for i in range(words_of(parameter.width)))
    return words
