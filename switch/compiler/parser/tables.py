"""Table declarations (P4_16 1.2.5, section 14.2)."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.parser.cursor import Cursor
from gradbed.switch.compiler.parser.expressions import parse_arguments, parse_expression, parse_initializer, parse_set
from gradbed.switch.compiler.parser.statements import parse_annotations


def parse_table(cursor: Cursor, annotations: list[s.Annotation]) -> s.TableDeclaration:
    loc = cursor.expect("table").loc
    name = cursor.name("the name of the table")
    cursor.declare(name.text, False)
    cursor.expect("{")
    table = s.TableDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, [], [], None, False, [])
    lists: set[str] = set()
    while not cursor.at("}"):
        _parse_property(cursor, table, lists)
    cursor.expect("}", "at the end of the table")
    if "actions" not in lists:
        end = name.loc + len(name.text)
        cursor.reporter.error(
            name.loc, f"table '{name.text}' has no actions", end, hint="add actions = { NoAction; }"
        )
    table.end = cursor.last_end
    return table


def _parse_property(cursor: Cursor, table: s.TableDeclaration, lists: set[str]) -> None:
    """Parse a property. `lists` says which of key, actions and entries have been given."""
    annotations = parse_annotations(cursor)
    loc = cursor.token.loc
    is_const = cursor.accept("const")
    name = cursor.name("a property of the table (key, actions, default_action, size, ...)").text
    if name in lists:
        cursor.reporter.error(loc, f"property '{name}' is given twice", cursor.last_end)
    if name in ("key", "actions", "entries"):
        lists.add(name)
    cursor.expect("=", f"after '{name}'")
    if name == "key":
        cursor.expect("{")
        while not cursor.at("}"):
            table.key.append(_parse_key(cursor))
        cursor.expect("}")
        cursor.accept(";")
    elif name == "actions":
        cursor.expect("{")
        while not cursor.at("}"):
            table.actions.append(_parse_action_ref(cursor, parse_annotations(cursor)))
            cursor.expect(";", "after the action")
        cursor.expect("}")
        cursor.accept(";")
    elif name == "entries":
        table.entries = []
        table.entries_const = is_const
        cursor.expect("{")
        while not cursor.at("}"):
            table.entries.append(_parse_entry(cursor))
        cursor.expect("}")
        cursor.accept(";")
    else:
        value: s.Expression | s.ActionRef
        value = _parse_action_ref(cursor, []) if name == "default_action" else parse_initializer(cursor)
        cursor.expect(";", f"after '{name}'")
        table.properties.append(s.TableProperty(loc, cursor.last_end, annotations, is_const, name, value))


def _parse_key(cursor: Cursor) -> s.KeyElement:
    loc = cursor.token.loc
    expression = parse_expression(cursor)
    cursor.expect(":", "and the match kind of the key")
    kind = cursor.name("a match kind (exact, lpm, ternary, ...)").text
    annotations = parse_annotations(cursor)
    cursor.expect(";", "after the key")
    return s.KeyElement(loc, cursor.last_end, annotations, expression, kind)


def _parse_action_ref(cursor: Cursor, annotations: list[s.Annotation]) -> s.ActionRef:
    loc = cursor.token.loc
    absolute = cursor.accept(".")
    name = cursor.name("the name of an action").text
    arguments = parse_arguments(cursor) if cursor.at("(") else None
    return s.ActionRef(loc, cursor.last_end, annotations, name, absolute, arguments)


def _parse_entry(cursor: Cursor) -> s.TableEntry:
    annotations = parse_annotations(cursor)
    loc = cursor.token.loc
    is_const = cursor.accept("const")
    priority = None
    if cursor.at("priority") and cursor.peek().text == "=":
        cursor.advance()
        cursor.advance()
        priority = parse_expression(cursor)
        cursor.expect(":", "after the priority")
    label = parse_set(cursor)
    keys = label.items if isinstance(label, s.ListExpression) else [label]
    cursor.expect(":", "and the action of the entry")
    action = _parse_action_ref(cursor, [])
    end = cursor.last_end
    annotations += parse_annotations(cursor)
    cursor.expect(";", "after the entry")
    return s.TableEntry(loc, end, annotations, is_const, priority, keys, action)
