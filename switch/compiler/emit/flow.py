"""The control-flow graph of a control: conditions, tables and runs of primitives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.ir import NO_ACTION, LoweredTable
from gradbed.switch.compiler.ir import operations as op
from gradbed.switch.compiler.ir.storage import Storage

_NUMBER = t.bit(16)
"""Width of the numbers of applications of a table and of actions."""


@dataclass(eq=False)
class FlowCondition:
    """A branch."""

    expression: ir.Expr
    if_true: Node | None
    if_false: Node | None
    loc: int
    end: int
    name: str = ""


@dataclass(eq=False)
class Run:
    """Primitives without tables or branches between them."""

    body: list[ir.LoweredStatement]
    next: Node | None
    name: str = ""


@dataclass(eq=False)
class FlowTable:
    """An application of a table."""

    table: LoweredTable
    kind: str
    next: dict[str, Node | None]
    """By "hit" and "miss", or by the name of the action."""
    loc: int
    name: str = ""


@dataclass(eq=False)
class Join:
    """A placeholder for a node that is known later, at the start of a loop."""

    target: Node | None = None


Node = FlowCondition | Run | FlowTable | Join


@dataclass
class FlowGraph:
    """The graph of a control."""

    start: Node | None
    nodes: list[Node] = field(default_factory=list)
    """In the order in which a walk from `start` meets them."""


def build_flow(body: list[ir.LoweredStatement], storage: Storage, reporter: Reporter) -> FlowGraph:
    builder = _FlowBuilder(storage, reporter)
    start = builder.build(body, None)
    start = builder.finish(start)
    graph = FlowGraph(start)
    graph.nodes = list(_walk(start))
    return graph


def successors(node: Node) -> list[Node | None]:
    if isinstance(node, FlowCondition):
        return [node.if_true, node.if_false]
    if isinstance(node, Run):
        return [node.next]
    if isinstance(node, FlowTable):
        return list(node.next.values())
    return [node.target]


def _walk(start: Node | None) -> Iterator[Node]:
    seen: set[int] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        pending.extend(reversed(successors(node)))


class _FlowBuilder:
    """Builds the graph backwards, from what follows a statement."""

    def __init__(self, storage: Storage, reporter: Reporter) -> None:
        self._storage = storage
        self._reporter = reporter
        self._leave: dict[ir.Label, Node | None] = {}
        self._repeat: dict[ir.Label, Node] = {}
        self._tables: list[FlowTable] = []
        self._ran: ir.FieldRef | None = None
        self._numbers: dict[ir.LoweredAction, int] = {}

    def build(self, body: list[ir.LoweredStatement], next_: Node | None) -> Node | None:
        """Return the first node of `body`, with `next_` as what follows it."""
        cut = next((i for i, s in enumerate(body) if isinstance(s, (ir.Leave, ir.Repeat, ir.LoweredEnd))), None)
        if cut is not None:
            last = body[cut]
            body = body[:cut]
            if isinstance(last, ir.Leave):
                next_ = self._leave[last.label]
            elif isinstance(last, ir.Repeat):
                next_ = self._repeat[last.label]
            else:
                next_ = None
        run: list[ir.LoweredStatement] = []
        for statement in reversed(body):
            if isinstance(statement, (ir.LoweredAssign, ir.LoweredPrimitive)):
                run.append(statement)
                continue
            if run:
                next_ = Run(run[::-1], next_)
                run = []
            next_ = self._branching(statement, next_)
        if run:
            next_ = Run(run[::-1], next_)
        return next_

    def _branching(self, statement: ir.LoweredStatement, next_: Node | None) -> Node | None:
        if isinstance(statement, ir.LoweredIf):
            then = self.build(statement.then, next_)
            otherwise = self.build(statement.otherwise, next_)
            if then is otherwise:
                return then
            return FlowCondition(statement.condition, then, otherwise, statement.loc, statement.end)
        if isinstance(statement, ir.LoweredBlock):
            self._leave[statement.label] = next_
            join = Join()
            self._repeat[statement.label] = join
            join.target = self.build(statement.body, next_)
            return join.target
        if isinstance(statement, ir.Apply):
            return self._table(statement, next_)
        raise AssertionError(f"{type(statement).__name__} in a control")

    def _table(self, statement: ir.Apply, next_: Node | None) -> Node:
        following: dict[str, Node | None] = {}
        if statement.kind == "hit":
            for name in ("hit", "miss"):
                following[name] = self.build(statement.branches.get(name, []), next_)
        else:
            others = self.build(statement.branches.get("", []), next_)
            for item in statement.table.actions:
                name = item.action.name
                branch = statement.branches.get(name)
                following[name] = others if branch is None else self.build(branch, next_)
            following[""] = others
        node = FlowTable(statement.table, statement.kind, following, statement.loc)
        self._tables.append(node)
        return node

    # ---- Tables applied in several places ----

    def finish(self, start: Node | None) -> Node | None:
        """Merge the applications of a table in several places, since BMv2 knows one continuation for each table."""
        by_table: dict[LoweredTable, list[FlowTable]] = {}
        reachable = {id(node) for node in _walk(start)}
        for node in self._tables:
            if id(node) in reachable:
                by_table.setdefault(node.table, []).append(node)
        replaced: dict[int, Node] = {}
        for table, nodes in by_table.items():
            if len(nodes) > 1:
                replaced.update(self._share(table, nodes))
        start = _resolve(start, replaced)
        for reached in list(_walk_resolving(start, replaced)):
            _redirect(reached, replaced)
        return start

    def _share(self, table: LoweredTable, nodes: list[FlowTable]) -> dict[int, Node]:
        kinds = {node.kind for node in nodes if len({id(target) for target in node.next.values()}) > 1}
        if len(kinds) > 1:
            return self._share_both(table, nodes)
        kind = kinds.pop() if kinds else "action"
        keys = ["hit", "miss"] if kind == "hit" else [*(item.action.name for item in table.actions), ""]
        for node in nodes:
            if node.kind != kind:
                target = next(iter(node.next.values()))
                node.next = dict.fromkeys(keys, target)
        if any(len({id(node.next[key]) for node in nodes}) > 1 for key in keys):
            self._warn_of_p4c(nodes[0])
        return self._joined(FlowTable(table, kind, dict.fromkeys(keys), nodes[0].loc), nodes, [])

    def _share_both(self, table: LoweredTable, nodes: list[FlowTable]) -> dict[int, Node]:
        """Share a table that some places apply for a hit and others for the action that ran.

        BMv2 leaves a table by one of the two. Here it is __HIT__ and __MISS__; the actions leave their numbers in a
        field that tells which one ran.
        """
        self._warn_of_p4c(nodes[0])
        numbers = {item.action.name: self._number(item.action) for item in table.actions}
        for node in nodes:
            if node.kind == "action":
                following = node.next[""]
                for name, number in numbers.items():
                    if node.next[name] is not node.next[""]:
                        following = FlowCondition(self._ran_is(number), node.next[name], following, 0, 0)
                node.next = {"hit": following, "miss": following}
        # Where there is an action profile and nothing matches, no action runs, and NoAction is to count as run.
        none = ir.Const(_NUMBER, numbers.get(NO_ACTION, 0))
        shared = FlowTable(table, "hit", {"hit": None, "miss": None}, nodes[0].loc)
        return self._joined(shared, nodes, [ir.LoweredAssign(0, 0, self._ran_field(), none)])

    def _warn_of_p4c(self, node: FlowTable) -> None:
        self._reporter.warning(
            node.loc,
            "p4c's back end for BMv2 refuses a table that is applied in several places and left differently",
            category="unsupported",
        )

    def _number(self, action: ir.LoweredAction) -> int:
        """Let an action leave its number, which tells that it ran."""
        number = self._numbers.get(action)
        if number is None:
            number = self._numbers[action] = len(self._numbers) + 1
            action.body.insert(0, ir.LoweredAssign(0, 0, self._ran_field(), ir.Const(_NUMBER, number)))
        return number

    def _ran_field(self) -> ir.FieldRef:
        if self._ran is None:
            self._ran = self._storage.scalar(_NUMBER, "action_run")
        return self._ran

    def _ran_is(self, number: int) -> ir.Expr:
        return op.equal(self._ran_field(), ir.Const(_NUMBER, number))

    def _joined(
        self, shared: FlowTable, nodes: list[FlowTable], before: list[ir.LoweredStatement]
    ) -> dict[int, Node]:
        """Replace nodes by one; after it the path depends on where the table was applied."""
        site = self._storage.scalar(_NUMBER, "applied_at")
        for key in shared.next:
            following = nodes[-1].next[key]
            for number in range(len(nodes) - 2, -1, -1):
                target = nodes[number].next[key]
                if target is not following:
                    here = op.equal(site, ir.Const(_NUMBER, number))
                    following = FlowCondition(here, target, following, 0, 0)
            shared.next[key] = following
        return {
            id(node): Run([ir.LoweredAssign(0, 0, site, ir.Const(_NUMBER, number)), *before], shared)
            for number, node in enumerate(nodes)
        }


def _resolve(node: Node | None, replaced: dict[int, Node]) -> Node | None:
    """Follow joins and replacements to an existing node."""
    seen = 0
    while node is not None:
        if id(node) in replaced:
            node = replaced[id(node)]
        elif isinstance(node, Join):
            node = node.target
            seen += 1
            if seen > 1000:
                return None
        else:
            return node
    return None


def _walk_resolving(start: Node | None, replaced: dict[int, Node]) -> Iterator[Node]:
    seen: set[int] = set()
    pending = [start]
    while pending:
        node = _resolve(pending.pop(), replaced)
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        pending.extend(successors(node))


def _redirect(node: Node, replaced: dict[int, Node]) -> None:
    if isinstance(node, FlowCondition):
        node.if_true = _resolve(node.if_true, replaced)
        node.if_false = _resolve(node.if_false, replaced)
    elif isinstance(node, Run):
        node.next = _resolve(node.next, replaced)
    elif isinstance(node, FlowTable):
        node.next = {key: _resolve(target, replaced) for key, target in node.next.items()}
