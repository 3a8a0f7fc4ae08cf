"""Statements, the declarations among them, and annotations."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.lexer import LINE_START, NAME
from gradbed.switch.compiler.parser.cursor import Cursor, SyntaxFailure
from gradbed.switch.compiler.parser.expressions import (
    TYPE_KEYWORDS,
    parse_arguments,
    parse_expression,
    parse_initializer,
    parse_postfix,
    parse_type,
)

# ---- Annotations ----


_CLOSING = {"(": ")", "[": "]"}


def parse_annotations(cursor: Cursor) -> list[s.Annotation]:
    annotations: list[s.Annotation] = []
    while cursor.text == "@":
        annotations.append(_parse_annotation(cursor))
    return annotations


def _parse_annotation(cursor: Cursor) -> s.Annotation:
    loc = cursor.advance().loc
    if cursor.token.kind != NAME:
        raise cursor.failure("expected the name of an annotation")
    name = cursor.advance().text
    if name == "pragma":
        return _parse_pragma(cursor, loc)
    if not cursor.at("(", "["):
        return s.Annotation(loc, cursor.last_end, name, None)
    structured = cursor.text == "["
    closers = [_CLOSING[cursor.advance().text]]
    body: list[str] = []
    while True:
        token = cursor.token
        if token.text in ("(", "["):
            closers.append(_CLOSING[token.text])
        elif token.text in (")", "]"):
            if token.text != closers[-1]:
                raise cursor.failure(f"expected '{closers[-1]}' in the annotation")
            closers.pop()
            if not closers:
                cursor.advance()
                break
        elif token.text == "":
            raise cursor.failure("expected ')' at the end of the annotation")
        body.append(token.text)
        cursor.advance()
    return s.Annotation(loc, cursor.last_end, name, body, structured)


def _parse_pragma(cursor: Cursor, loc: int) -> s.Annotation:
    """Parse `@pragma name rest-of-the-line`, the old spelling of @name(rest)."""
    if cursor.token.kind != NAME:
        raise cursor.failure("expected the name of a pragma")
    name = cursor.advance().text
    body: list[str] = []
    while cursor.token.text and not cursor.token.flags & LINE_START:
        body.append(cursor.advance().text)
    return s.Annotation(loc, cursor.last_end, name, body or None)


# ---- Statements ----


_COMPOUND = frozenset(("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "|+|=", "|-|="))


def parse_block(cursor: Cursor, annotations: list[s.Annotation] | None = None) -> s.Block:
    loc = cursor.expect("{").loc
    cursor.enter()
    mark = cursor.open_scope()
    statements = parse_statements(cursor)
    cursor.close_scope(mark)
    cursor.leave()
    cursor.expect("}", "at the end of the block")
    return s.Block(loc, cursor.last_end, annotations or [], statements)


def parse_statements(cursor: Cursor, stops: tuple[str, ...] = ()) -> list[s.Statement]:
    """Parse statements up to '}' or one of `stops`, continuing after those with errors."""
    statements: list[s.Statement] = []
    while not cursor.at("}", *stops) and cursor.text:
        start = cursor.index
        nesting = cursor.nesting
        try:
            statements.append(parse_statement(cursor))
        except SyntaxFailure:
            cursor.nesting = nesting
            cursor.skip_to(stops)
            if cursor.index == start:
                cursor.advance()
    return statements


def parse_statement(cursor: Cursor) -> s.Statement:
    annotations = parse_annotations(cursor) if cursor.text == "@" else []
    token = cursor.token
    text = token.text
    if text == "{":
        return parse_block(cursor, annotations)
    if token.kind == NAME:
        if text == "if":
            return _parse_if(cursor)
        if text == "switch":
            return _parse_switch(cursor)
        if text == "return":
            cursor.advance()
            value = None if cursor.at(";") else parse_expression(cursor)
            cursor.expect(";")
            return s.Return(token.loc, cursor.last_end, value)
        if text == "exit":
            cursor.advance()
            cursor.expect(";")
            return s.Exit(token.loc, cursor.last_end)
        if text == "const":
            return parse_constant(cursor, annotations)
        following = cursor.peek().text
        if text == "for" and following == "(":
            return _parse_for(cursor)
        if text in ("break", "continue") and following == ";":
            cursor.advance()
            cursor.advance()
            kind = s.Break if text == "break" else s.Continue
            return kind(token.loc, cursor.last_end)
        if _starts_declaration(cursor):
            return parse_variable_or_instance(cursor, annotations)
    if text == ";":
        cursor.advance()
        return s.Empty(token.loc, cursor.last_end)
    return _parse_assignment_or_call(cursor)


def _starts_declaration(cursor: Cursor) -> bool:
    token = cursor.token
    if token.text in TYPE_KEYWORDS:
        return True
    following = cursor.peek()
    if following.kind == NAME and cursor.at_name():
        return True
    if not cursor.is_type_name(token.text):
        return False
    return following.text in ("(", "[") or (following.text == "<" and not _applies_type(cursor))


def _applies_type(cursor: Cursor) -> bool:
    """Return whether '.apply' follows the type arguments at 'Type <'."""
    depth = 0
    distance = 1
    while cursor.peek(distance).text:
        depth += {"<": 1, ">": -1, ">>": -2}.get(cursor.peek(distance).text, 0)
        distance += 1
        if depth <= 0:
            return cursor.peek(distance).text == "."
    return False


def parse_variable_or_instance(cursor: Cursor, annotations: list[s.Annotation]) -> s.Declaration:
    """Parse `Type name;`, `Type name = value;` or `Type(arguments) name;`."""
    loc = cursor.token.loc
    type_ = parse_type(cursor)
    if cursor.text == "(":
        return finish_instantiation(cursor, loc, annotations, type_)
    name = cursor.name("the name of the variable")
    cursor.declare(name.text, False)
    initial = None
    if cursor.accept("="):
        initial = parse_initializer(cursor)
    cursor.expect(";", "at the end of the declaration")
    return s.VariableDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, type_, initial)


def finish_instantiation(
    cursor: Cursor, loc: int, annotations: list[s.Annotation], type_: s.TypeSyntax
) -> s.Instantiation:
    arguments = parse_arguments(cursor)
    name = cursor.name("the name of the instance")
    cursor.declare(name.text, False)
    if cursor.at("="):
        raise cursor.failure("expected ';' (instances with abstract methods are not in v1model)")
    cursor.expect(";", "at the end of the instantiation")
    return s.Instantiation(loc, cursor.last_end, annotations, name.text, name.loc, type_, arguments)


def parse_constant(cursor: Cursor, annotations: list[s.Annotation]) -> s.ConstantDeclaration:
    loc = cursor.expect("const").loc
    type_ = parse_type(cursor)
    name = cursor.name("the name of the constant")
    cursor.declare(name.text, False)
    cursor.expect("=", "and the value of the constant")
    initial = parse_initializer(cursor)
    cursor.expect(";", "at the end of the declaration")
    return s.ConstantDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, type_, initial)


def _parse_if(cursor: Cursor) -> s.Statement:
    loc = cursor.expect("if").loc
    cursor.enter()
    cursor.expect("(", "after 'if'")
    condition = parse_expression(cursor)
    cursor.expect(")", "after the condition", "a comparison is written '=='" if cursor.at("=") else "")
    then = parse_statement(cursor)
    otherwise = None
    if cursor.at("else"):
        cursor.advance()
        otherwise = parse_statement(cursor)
    cursor.leave()
    return s.If(loc, cursor.last_end, condition, then, otherwise)


def _parse_switch(cursor: Cursor) -> s.Statement:
    loc = cursor.expect("switch").loc
    cursor.expect("(", "after 'switch'")
    expression = parse_expression(cursor)
    cursor.expect(")")
    cursor.expect("{")
    cases: list[s.SwitchCase] = []
    while not cursor.at("}"):
        start = cursor.token.loc
        label = None
        if not cursor.accept("default"):
            label = parse_expression(cursor)
        foreign = isinstance(label, s.Name) and label.name == "case"
        cursor.expect(":", "after the label", "a label is written without 'case'" if foreign else "")
        body = parse_block(cursor) if cursor.at("{") else None
        cases.append(s.SwitchCase(start, cursor.last_end, label, body))
    cursor.expect("}")
    return s.Switch(loc, cursor.last_end, expression, cases)


def _parse_for(cursor: Cursor) -> s.Statement:
    loc = cursor.advance().loc
    cursor.expect("(")
    cursor.enter()
    mark = cursor.open_scope()
    annotations = parse_annotations(cursor)
    if _starts_declaration(cursor):
        start = cursor.token.loc
        type_ = parse_type(cursor)
        name = cursor.name("the name of the variable")
        cursor.declare(name.text, False)
        if cursor.accept("in"):
            variable = s.VariableDeclaration(start, name.end, annotations, name.text, name.loc, type_, None)
            statement: s.Statement = _finish_for_in(cursor, loc, variable)
            cursor.close_scope(mark)
            cursor.leave()
            return statement
        value = parse_initializer(cursor) if cursor.accept("=") else None
        initial: list[s.Statement] = [
            s.VariableDeclaration(start, cursor.last_end, annotations, name.text, name.loc, type_, value)
        ]
        if cursor.accept(","):
            initial += _simple_statements(cursor, ";")
    else:
        initial = _simple_statements(cursor, ";")
    cursor.expect(";")
    condition = parse_expression(cursor)
    cursor.expect(";")
    update = _simple_statements(cursor, ")")
    cursor.expect(")")
    body = parse_statement(cursor)
    cursor.close_scope(mark)
    cursor.leave()
    return s.For(loc, cursor.last_end, initial, condition, update, body)


def _finish_for_in(cursor: Cursor, loc: int, variable: s.VariableDeclaration) -> s.ForIn:
    collection = parse_expression(cursor)
    if cursor.at(".."):
        cursor.advance()
        last = parse_expression(cursor)
        collection = s.Binary(collection.loc, cursor.last_end, "..", collection, last)
    cursor.expect(")")
    body = parse_statement(cursor)
    return s.ForIn(loc, cursor.last_end, variable, collection, body)


def _simple_statements(cursor: Cursor, stop: str) -> list[s.Statement]:
    statements: list[s.Statement] = []
    while not cursor.at(stop):
        statements.append(_simple_statement(cursor))
        if not cursor.accept(","):
            break
    return statements


def _simple_statement(cursor: Cursor) -> s.Statement:
    """Parse an assignment or a call, without its semicolon."""
    loc = cursor.token.loc
    target = parse_postfix(cursor)
    text = cursor.text
    if text == "=" or text in _COMPOUND:
        cursor.advance()
        source = parse_initializer(cursor)
        return s.Assignment(loc, cursor.last_end, target, "=" if text == "=" else text[:-1], source)
    if isinstance(target, s.Call):
        return s.CallStatement(loc, cursor.last_end, target)
    hint = "a table is applied with '.apply();', a function is called with '();'" if cursor.at(";") else ""
    raise cursor.failure("expected '=' or a call", hint=hint)


def _parse_assignment_or_call(cursor: Cursor) -> s.Statement:
    statement = _simple_statement(cursor)
    end = cursor.last_end
    cursor.expect(";", "at the end of the statement", _hint_of_loop(statement))
    statement.end = end
    return statement


def _hint_of_loop(statement: s.Statement) -> str:
    """Return a hint for `while (...) { }`, which reads like a call."""
    call = statement.call if isinstance(statement, s.CallStatement) else None
    callee = call.callee if isinstance(call, s.Call) else None
    if isinstance(callee, s.Name) and callee.name == "while":
        return "P4 has no 'while': use 'for', or in a parser a state that goes back to itself"
    return ""
