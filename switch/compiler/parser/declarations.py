"""Declarations at the top level, and the contents of parsers, controls and extern objects."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.lexer import NAME, Token
from gradbed.switch.compiler.parser.cursor import Cursor, SyntaxFailure
from gradbed.switch.compiler.parser.expressions import (
    parse_expression,
    parse_initializer,
    parse_set,
    parse_type,
    parse_type_parameters,
)
from gradbed.switch.compiler.parser.statements import (
    finish_instantiation,
    parse_annotations,
    parse_block,
    parse_constant,
    parse_statement,
    parse_statements,
    parse_variable_or_instance,
)
from gradbed.switch.compiler.parser.tables import parse_table

_STARTERS = frozenset(
    (
        *("parser", "control", "package", "extern", "struct", "header", "header_union", "enum"),
        *("typedef", "const", "action", "error", "match_kind"),
    )
)


def parse_program(tokens: Sequence[Token], reporter: Reporter) -> s.P4Program:
    """Parse a program. Syntax errors go to the reporter, and the declarations around them are returned."""
    cursor = Cursor(list(tokens), reporter)
    declarations: list[s.Declaration] = []
    while cursor.text:
        start = cursor.index
        if cursor.accept(";"):
            continue
        try:
            declarations.append(parse_declaration(cursor))
        except SyntaxFailure:
            cursor.nesting = 0
            cursor.close_scope(1)
            if cursor.index == start:
                cursor.advance()
            _resynchronize(cursor)
    return s.P4Program(tokens[0].loc, cursor.last_end, declarations)


def _resynchronize(cursor: Cursor) -> None:
    """Continue at the next keyword that starts a declaration at the start of a line."""
    while cursor.text and not (cursor.text in _STARTERS and cursor.token.flags & 1):
        cursor.advance()


def parse_declaration(cursor: Cursor) -> s.Declaration:
    annotations = parse_annotations(cursor)
    text = cursor.text
    if text == "const":
        return parse_constant(cursor, annotations)
    if text in ("struct", "header", "header_union"):
        return parse_struct(cursor, annotations)
    if text == "enum":
        return _parse_enum(cursor, annotations)
    if text in ("error", "match_kind") and cursor.peek().text == "{":
        return _parse_error(cursor, annotations)
    if text == "typedef" or (text == "type" and cursor.peek().kind == NAME):
        return _parse_typedef(cursor, annotations)
    if text == "extern":
        return _parse_extern(cursor, annotations)
    if text == "action":
        return parse_action(cursor, annotations)
    if text == "parser":
        return _parse_parser(cursor, annotations)
    if text == "control":
        return _parse_control(cursor, annotations)
    if text == "package":
        return _parse_package(cursor, annotations)
    if text == "header_type":
        raise cursor.reporter.fatal(
            cursor.token.loc,
            "this program is P4_14: translate it to P4_16, for instance with p4test --std p4-14 --pp NEW.p4 OLD.p4",
        )
    return _parse_function_or_instance(cursor, annotations)


def _parse_function_or_instance(cursor: Cursor, annotations: list[s.Annotation]) -> s.Declaration:
    loc = cursor.token.loc
    type_ = parse_type(cursor)
    if cursor.text == "(":
        return finish_instantiation(cursor, loc, annotations, type_)
    mark = cursor.open_scope()
    declaration = _parse_prototype(cursor, annotations, loc, type_)
    if cursor.text != "{":
        raise cursor.failure("expected '{' and the body of the function")
    declaration.body = parse_block(cursor)
    cursor.close_scope(mark)
    declaration.end = cursor.last_end
    return declaration


def _parse_prototype(
    cursor: Cursor, annotations: list[s.Annotation], loc: int, return_type: s.TypeSyntax
) -> s.FunctionDeclaration:
    name = cursor.name("the name of the function")
    type_parameters = parse_type_parameters(cursor)
    parameters = parse_parameters(cursor)
    return s.FunctionDeclaration(
        loc, cursor.last_end, annotations, name.text, name.loc, type_parameters, return_type, parameters, None
    )


def parse_parameters(cursor: Cursor) -> list[s.Parameter]:
    cursor.expect("(")
    parameters: list[s.Parameter] = []
    while not cursor.at(")"):
        annotations = parse_annotations(cursor)
        loc = cursor.token.loc
        direction = ""
        if cursor.text in ("in", "out", "inout"):
            direction = cursor.advance().text
        type_ = parse_type(cursor)
        name = cursor.name("the name of the parameter")
        cursor.declare(name.text, False)
        default = parse_expression(cursor) if cursor.accept("=") else None
        parameters.append(s.Parameter(loc, cursor.last_end, annotations, direction, type_, name.text, default))
        if not cursor.accept(","):
            break
    cursor.expect(")", "at the end of the parameters")
    return parameters


def parse_struct(cursor: Cursor, annotations: list[s.Annotation]) -> s.StructDeclaration:
    loc = cursor.token.loc
    kind = cursor.advance().text
    name = cursor.name(f"the name of the {kind}")
    cursor.declare(name.text, True)
    mark = cursor.open_scope()
    type_parameters = parse_type_parameters(cursor)
    cursor.expect("{")
    fields: list[s.StructField] = []
    while not cursor.at("}"):
        start = cursor.index
        try:
            fields.append(_parse_field(cursor))
        except SyntaxFailure:
            cursor.skip_to(("}",))
            if cursor.index == start:
                raise
    cursor.expect("}")
    cursor.close_scope(mark)
    return s.StructDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, kind, type_parameters, fields)


def _parse_field(cursor: Cursor) -> s.StructField:
    annotations = parse_annotations(cursor)
    loc = cursor.token.loc
    type_ = parse_type(cursor)
    name = cursor.name("the name of the field")
    cursor.expect(";", "after the field")
    return s.StructField(loc, cursor.last_end, annotations, type_, name.text)


def _parse_enum(cursor: Cursor, annotations: list[s.Annotation]) -> s.EnumDeclaration:
    loc = cursor.advance().loc
    underlying = None if cursor.at_name() and cursor.peek().text == "{" else parse_type(cursor)
    name = cursor.name("the name of the enum")
    cursor.declare(name.text, True)
    members = _parse_members(cursor, with_values=underlying is not None)
    return s.EnumDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, underlying, members)


def _parse_error(cursor: Cursor, annotations: list[s.Annotation]) -> s.ErrorDeclaration:
    token = cursor.advance()
    members = _parse_members(cursor, with_values=False)
    return s.ErrorDeclaration(token.loc, cursor.last_end, annotations, token.text, token.loc, members)


def _parse_members(cursor: Cursor, with_values: bool) -> list[s.EnumMember]:
    cursor.expect("{")
    members: list[s.EnumMember] = []
    while not cursor.at("}"):
        parse_annotations(cursor)
        name = cursor.name("the name of a member")
        value = None
        if with_values:
            cursor.expect("=", "and the value of the member")
            value = parse_expression(cursor)
        members.append(s.EnumMember(name.loc, cursor.last_end, name.text, value))
        if not cursor.accept(","):
            break
    cursor.expect("}")
    return members


def _parse_typedef(cursor: Cursor, annotations: list[s.Annotation]) -> s.TypedefDeclaration:
    token = cursor.advance()
    type_: s.TypeSyntax | s.StructDeclaration = parse_type(cursor)
    name = cursor.name("the name of the type")
    cursor.declare(name.text, True)
    cursor.expect(";")
    return s.TypedefDeclaration(
        token.loc, cursor.last_end, annotations, name.text, name.loc, token.text == "type", type_
    )


def _parse_extern(cursor: Cursor, annotations: list[s.Annotation]) -> s.Declaration:
    loc = cursor.advance().loc
    following = cursor.peek().text
    if cursor.at_name() and (following in ("{", ";") or _is_generic_extern_object(cursor)):
        return _parse_extern_object(cursor, annotations, loc)
    mark = cursor.open_scope()
    return_type = parse_type(cursor)
    function = _parse_prototype(cursor, annotations, loc, return_type)
    cursor.close_scope(mark)
    cursor.expect(";", "after the extern function")
    cursor.declare(function.name, False)
    return function


def _is_generic_extern_object(cursor: Cursor) -> bool:
    distance = 1
    if cursor.peek(1).text != "<":
        return False
    while cursor.peek(distance).text and cursor.peek(distance).text != ">":
        distance += 1
    return cursor.peek(distance + 1).text == "{"


def _parse_extern_object(cursor: Cursor, annotations: list[s.Annotation], loc: int) -> s.ExternDeclaration:
    name = cursor.name()
    cursor.declare(name.text, True)
    methods: list[s.FunctionDeclaration] = []
    mark = cursor.open_scope()
    type_parameters = parse_type_parameters(cursor)
    if not cursor.accept(";"):
        cursor.expect("{")
        while not cursor.at("}"):
            methods.append(_parse_method(cursor, name.text))
        cursor.expect("}")
    cursor.close_scope(mark)
    return s.ExternDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, type_parameters, methods)


def _parse_method(cursor: Cursor, extern: str) -> s.FunctionDeclaration:
    annotations = parse_annotations(cursor)
    loc = cursor.token.loc
    cursor.accept("abstract")
    mark = cursor.open_scope()
    if cursor.text == extern and cursor.peek().text == "(":
        return_type: s.TypeSyntax = s.BaseType(loc, loc, "void", None)
    else:
        return_type = parse_type(cursor)
    method = _parse_prototype(cursor, annotations, loc, return_type)
    cursor.close_scope(mark)
    cursor.expect(";", "after the method")
    return method


def parse_action(cursor: Cursor, annotations: list[s.Annotation]) -> s.FunctionDeclaration:
    loc = cursor.expect("action").loc
    name = cursor.name("the name of the action")
    cursor.declare(name.text, False)
    mark = cursor.open_scope()
    parameters = parse_parameters(cursor)
    body = parse_block(cursor)
    cursor.close_scope(mark)
    return s.FunctionDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, [], None, parameters, body)


def _parse_package(cursor: Cursor, annotations: list[s.Annotation]) -> s.PackageDeclaration:
    loc = cursor.advance().loc
    name = cursor.name("the name of the package")
    cursor.declare(name.text, True)
    mark = cursor.open_scope()
    type_parameters = parse_type_parameters(cursor)
    parameters = parse_parameters(cursor)
    cursor.close_scope(mark)
    cursor.expect(";", "after the package")
    return s.PackageDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, type_parameters, parameters)


def _parse_parser(cursor: Cursor, annotations: list[s.Annotation]) -> s.ParserDeclaration:
    loc = cursor.advance().loc
    name = cursor.name("the name of the parser")
    cursor.declare_global_type(name.text)
    mark = cursor.open_scope()
    type_parameters = parse_type_parameters(cursor)
    parameters = parse_parameters(cursor)
    declaration = s.ParserDeclaration(
        loc, cursor.last_end, annotations, name.text, name.loc, type_parameters, parameters, [], [], None
    )
    if not cursor.accept(";"):
        if cursor.at("("):
            declaration.constructor_parameters = parse_parameters(cursor)
        cursor.expect("{", "and the states of the parser")
        states: list[s.StateDeclaration] = []
        while not cursor.at("}"):
            _parse_parser_element(cursor, declaration.locals, states)
        cursor.expect("}")
        declaration.states = states
    cursor.close_scope(mark)
    declaration.end = cursor.last_end
    return declaration


def _parse_parser_element(cursor: Cursor, locals_: list[s.Declaration], states: list[s.StateDeclaration]) -> None:
    annotations = parse_annotations(cursor)
    if cursor.text == "state":
        states.append(_parse_state(cursor, annotations))
    elif cursor.text == "value_set":
        locals_.append(_parse_value_set(cursor, annotations))
    elif cursor.text == "const":
        locals_.append(parse_constant(cursor, annotations))
    else:
        locals_.append(parse_variable_or_instance(cursor, annotations))


def _parse_value_set(cursor: Cursor, annotations: list[s.Annotation]) -> s.ValueSetDeclaration:
    loc = cursor.advance().loc
    cursor.expect("<")
    type_ = parse_type(cursor)
    cursor.expect_closing_angle()
    cursor.expect("(")
    size = parse_expression(cursor)
    cursor.expect(")")
    name = cursor.name("the name of the value set")
    cursor.expect(";")
    cursor.declare(name.text, False)
    return s.ValueSetDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, type_, size)


def _parse_state(cursor: Cursor, annotations: list[s.Annotation]) -> s.StateDeclaration:
    loc = cursor.advance().loc
    name = cursor.name("the name of the state")
    cursor.expect("{")
    mark = cursor.open_scope()
    statements = parse_statements(cursor, ("transition",))
    transition = _parse_transition(cursor) if cursor.at("transition") else None
    cursor.close_scope(mark)
    cursor.expect("}", "at the end of the state")
    return s.StateDeclaration(loc, cursor.last_end, annotations, name.text, name.loc, statements, transition)


def _parse_transition(cursor: Cursor) -> s.Transition:
    loc = cursor.advance().loc
    if not cursor.accept("select"):
        state = cursor.name("the name of a state").text
        cursor.expect(";", "after the transition")
        return s.Transition(loc, cursor.last_end, None, [], state)
    cursor.expect("(")
    keys: list[s.Expression] = []
    while not cursor.at(")"):
        keys.append(parse_initializer(cursor))
        if not cursor.accept(","):
            break
    cursor.expect(")")
    cursor.expect("{")
    cases: list[s.SelectCase] = []
    while not cursor.at("}"):
        start = cursor.token.loc
        label = parse_set(cursor)
        cursor.expect(":", "after the label")
        state = cursor.name("the name of a state").text
        cursor.expect(";", "after the case")
        cases.append(s.SelectCase(start, cursor.last_end, label, state))
    cursor.expect("}")
    return s.Transition(loc, cursor.last_end, keys, cases, "")


def _parse_control(cursor: Cursor, annotations: list[s.Annotation]) -> s.ControlDeclaration:
    loc = cursor.advance().loc
    name = cursor.name("the name of the control")
    cursor.declare_global_type(name.text)
    mark = cursor.open_scope()
    type_parameters = parse_type_parameters(cursor)
    parameters = parse_parameters(cursor)
    declaration = s.ControlDeclaration(
        loc, cursor.last_end, annotations, name.text, name.loc, type_parameters, parameters, [], [], None
    )
    if not cursor.accept(";"):
        if cursor.at("("):
            declaration.constructor_parameters = parse_parameters(cursor)
        cursor.expect("{", "and the body of the control")
        while not cursor.at("apply"):
            if cursor.at("}") or not cursor.text:
                raise cursor.failure("expected the apply block of the control")
            start = cursor.index
            try:
                declaration.locals.append(_parse_control_local(cursor))
            except SyntaxFailure:
                cursor.skip_to(("apply", "action", "table"))
                if cursor.index == start or cursor.at("}"):
                    raise
        cursor.advance()
        declaration.body = parse_block(cursor)
        cursor.expect("}", "at the end of the control")
    cursor.close_scope(mark)
    declaration.end = cursor.last_end
    return declaration


def _parse_control_local(cursor: Cursor) -> s.Declaration:
    annotations = parse_annotations(cursor)
    if cursor.text == "action":
        return parse_action(cursor, annotations)
    if cursor.text == "table":
        return parse_table(cursor, annotations)
    if cursor.text == "const":
        return parse_constant(cursor, annotations)
    return parse_variable_or_instance(cursor, annotations)


__all__ = ["parse_program", "parse_statement"]
