"""Directives, macros and the positions of what they produce."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.compiler.conditions import evaluate_condition
from gradbed.switch.compiler.diagnostics import FatalError, Reporter
from gradbed.switch.compiler.lexer import STRING, Token, tokenize_fragment
from gradbed.switch.compiler.preprocessor import Preprocessor
from gradbed.switch.compiler.source import SourceManager
from tests.examples import examples


class Run:
    """One run of the preprocessor over files in a folder, of which main.p4 comes first."""

    def __init__(self, folder: Path, **files: str) -> None:
        for name, text in files.items():
            (folder / f"{name}.p4").write_text(text)
        self.sources = SourceManager()
        self.reporter = Reporter(self.sources)
        self.tokens: list[Token] = []
        try:
            preprocessor = Preprocessor(self.sources, self.reporter, [folder / "include"], {"OUTSIDE": "41 + 1"})
            self.tokens = preprocessor.run(folder / "main.p4")
        except FatalError:
            pass

    @property
    def text(self) -> str:
        return " ".join(token.text for token in self.tokens).strip()

    @property
    def errors(self) -> list[str]:
        return [f"{item.line}:{item.column} {item.message}" for item in self.reporter.diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define A 1\nA B", "1 B"),
        ("#define A(x) x + x\nA(2) A", "2 + 2 A"),
        ("#define A(n) lane_##n, 0x##n\nA(1F)", "lane_1F , 0x1F"),
        ('#define S(x) #x\nS(a  "b\\n" + c)', '"a \\"b\\\\n\\" + c"'),
        ("#define A B\n#define B A\nA B", "A B"),
        ("#define F(x) x G\n#define G(x) F(x)\nF(1)(2)", "1 2 G"),
        ("#define E()\n[E()]", "[ ]"),
        ("#define P(a, b) a##b\nP(, x) P(x, ) P(, )", "x x"),
        ("#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2)", "g ( 1 , 2 )"),
        (
            "#define ROW(X, p) X(p##0) X(p##1)\n#define ALL(X) ROW(X, 0) ROW(X, 1)\n#define I(n) <n>\nALL(I)",
            "< 00 > < 01 > < 10 > < 11 >",
        ),
        ("#define A 1\n#undef A\nA", "A"),
        ("#define LONG 1 + \\\n 2\nLONG", "1 + 2"),
        ("OUTSIDE", "41 + 1"),
        ("a /* b\n c */ d // e\n f", "a d f"),
    ],
)
def test_macros(tmp_path: Path, text: str, expected: str) -> None:
    run = Run(tmp_path, main=text)
    assert run.errors == []
    assert run.text == expected


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("1", True),
        ("0", False),
        ("2 > 1 && !0", True),
        ("defined(OUTSIDE) && !defined NOWHERE", True),
        ("defined(__TARGET_BMV2__) && defined(__p4c__)", True),
        ("NOWHERE", False),
        ("OUTSIDE == 42", True),
        ("(1 ? 0 : 1) || 0x10 == 16", True),
        ("-7 / 2 == -3 && -7 % 2 == -1", True),
        ("1 << 4 | 1", True),
    ],
)
def test_conditions(tmp_path: Path, condition: str, taken: bool) -> None:
    run = Run(tmp_path, main=f"#if {condition}\nyes\n#else\nno\n#endif")
    assert run.errors == []
    assert run.text == ("yes" if taken else "no")


def test_branches_that_are_not_taken_are_not_looked_at(tmp_path: Path) -> None:
    text = "#if 0\n#if 1\na\n#else\n'\n#endif\n#elif 1\nb\n#elif bad bad\nc\n#else\nd\n#endif"
    run = Run(tmp_path, main=text)
    assert (run.text, run.errors) == ("b", [])


def test_includes_are_found_beside_the_file_and_in_the_directories(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "far.p4").write_text("far")
    run = Run(tmp_path, main='#include "near.p4"\n#include <far.p4>\nhere', near="near")
    assert run.text == "near far here"
    assert [run.sources.locate(token.loc).file.rsplit("/", 1)[-1] for token in run.tokens[:3]] == [
        "near.p4",
        "far.p4",
        "main.p4",
    ]


def test_line_directive_changes_positions(tmp_path: Path) -> None:
    run = Run(tmp_path, main='#line 100 "other.p4"\nx\ny')
    places = [run.sources.locate(token.loc) for token in run.tokens[:2]]
    assert [(place.file, place.line) for place in places] == [("other.p4", 100), ("other.p4", 101)]


def test_tokens_of_a_macro_point_to_its_use_and_its_definition(tmp_path: Path) -> None:
    run = Run(tmp_path, main="#define INNER bad\n#define OUTER x INNER\n\n  OUTER\n")
    bad = run.tokens[1]
    place = run.sources.locate(bad.loc)
    assert (bad.text, place.line, place.column) == ("bad", 4, 3)
    chain = [(macro, run.sources.locate(loc).line) for macro, loc in run.sources.expansions_of(bad.loc)]
    assert chain == [("OUTER", 2), ("INNER", 1)]


def test_arguments_keep_their_own_positions(tmp_path: Path) -> None:
    run = Run(tmp_path, main="#define F(x) [x]\nF( arg )")
    place = run.sources.locate(run.tokens[1].loc)
    assert (run.tokens[1].text, place.line, place.column) == ("arg", 2, 4)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("#error no lanes", "1:1 #error no lanes"),
        ("#if 1\nx", "1:1 this condition has no #endif"),
        ("#endif", "1:2 #endif without #if"),
        ("#if 1\n#else\n#else\n#endif", "3:2 #else after #else"),
        ('#include "nowhere.p4"', "1:10 cannot find 'nowhere.p4' here or in the include directories (option -I)"),
        ("#define F(a) a\nF(1, 2)", "2:1 macro 'F' takes 1 argument(s), but 2 were given"),
        ("#define F(a) a\nF(1", "2:1 unterminated argument list of macro 'F'"),
        ("#if 1 / 0\n#endif", "1:7 division by zero in the condition"),
        ("#if 1 +\n#endif", "1:2 the condition ends too early"),
        ("#wat", "1:1 there is no directive '#wat': the line is left out"),
        ("#elseif", "1:1 there is no directive '#elseif': the line is left out; did you mean 'else'?"),
        ("x /* y", "1:3 unterminated comment"),
        ('x "y', "1:3 unterminated string"),
        ('x "y\n z', "1:3 unterminated string"),
        ("#define F(a) +##a\nF(+) F(b)", "2:6 pasting '+' and 'b' does not give a valid token: they stay two"),
        ("#define F(a, a) a", "1:10 the parameters of a macro are different names with commas"),
    ],
)
def test_errors(tmp_path: Path, text: str, error: str) -> None:
    assert error in Run(tmp_path, main=text).errors


def test_a_string_over_several_lines(tmp_path: Path) -> None:
    """As what p4c sees behind cpp: directives and macros count in it, what is left out is not in it."""
    lines = [
        '@restriction("',
        "    // comment stays",
        "#define KEY dst",
        "  KEY::mask != 0;",
        "#if 0",
        " left out",
        "#else",
        "",
        '  \\"taken\\" }',
        "#endif",
        '  ") KEY "one" // end',
        "last",
    ]
    text = "\n".join(lines)
    run = Run(tmp_path, main=text)
    assert run.errors == []
    kinds = [token.kind for token in run.tokens]
    string = run.tokens[3]
    assert [token.text for token in run.tokens if token is not string] == [
        "@",
        "restriction",
        "(",
        ")",
        "dst",
        '"one"',
        "last",
        "",
    ]
    assert (string.kind, kinds.count(STRING)) == (STRING, 2)
    assert string.text == '"\n    // comment stays\n\n  dst::mask != 0;\n\n\n\n\n  \\"taken\\" }\n\n  "'
    places = {token.text: run.sources.locate(token.loc) for token in run.tokens}
    assert (places["dst"].line, places["dst"].column) == (11, 6)
    assert places["last"].line == 12


def test_two_long_strings_behind_one_another(tmp_path: Path) -> None:
    run = Run(tmp_path, main='a "1\n2" b "3\n4" /* c\n d */ e "5\n\n6" f')
    assert run.errors == []
    assert [token.text for token in run.tokens] == ["a", '"1\n2"', "b", '"3\n4"', "e", '"5\n\n6"', "f", ""]


def test_what_is_left_out_may_have_open_strings(tmp_path: Path) -> None:
    assert Run(tmp_path, main='#if 0\nsay "what\n#endif\nx').text == "x"


SPLICED = [
    "#define TWICE(x) \\ \n x = \\\t \n x + x;\nTWICE(y) z",
    "#define A lane_\\  \n7 + 0x\\ \nff\nA b",
    "a // joined \\ \n to the comment\nb",
    "a // two \\\\ \n backslashes\nb",
    'a "x\\ \ny" b',
    'a "x\\\\" b',
    "#if 1 \\\t\n && 0\na\n#else \\ \n\nb\n#endif",
    "a /* \\ \n */ b",
    "a\\ \n\\\v\f\nb",
]


@pytest.mark.parametrize("text", SPLICED)
def test_blanks_behind_a_backslash_as_in_gcc(tmp_path: Path, text: str) -> None:
    run = Run(tmp_path, main=text)
    command = ["gcc", "-E", "-P", "-x", "c", "-"]
    gcc = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert run.text.replace(" ", "") == "".join(gcc.stdout.split())
    warned = gcc.stderr.count("backslash and newline separated by space")
    assert len(run.reporter.diagnostics) == warned
    assert all(item.severity == "warning" and item.category == "backslash" for item in run.reporter.diagnostics)


def test_lines_that_are_no_directives_are_left_out(tmp_path: Path) -> None:
    """One warning for a block of them; a line number with more behind it is no line number."""
    run = Run(tmp_path, main='####\n# THIS FILE IS\n# 2nd part\n####\na\n  # by hand\n# 7 "other.p4"\n__LINE__')
    assert run.text == "a 7"
    assert run.errors == [
        "1:1 there is no directive '##': the line is left out",
        "6:3 there is no directive '#by': the line is left out",
    ]


def test_a_hash_before_no_parameter_stays(tmp_path: Path) -> None:
    run = Run(tmp_path, main="#define F(a) # a #b\nF(1)")
    assert (run.text, run.errors) == ('"1" # b', [])


def test_a_macro_bomb_is_refused(tmp_path: Path) -> None:
    text = "#define A0 x x x x x x x x\n" + "".join(
        f"#define A{n} {' '.join([f'A{n - 1}'] * 8)}\n" for n in range(1, 12)
    )
    assert Run(tmp_path, main=text + "A11").errors == ["13:1 the program expands to more than 500000 tokens"]


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    (error,) = Run(tmp_path, main='#include "main.p4"').errors
    assert error.endswith("files include each other more than 100 deep")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.recursive(
        st.integers(0, 99).map(str),
        lambda inner: st.tuples(
            inner, st.sampled_from(["+", "-", "*", "|", "&", "^", "<", ">=", "==", "<<"]), inner
        ).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2] if parts[1] != '<<' else '3'})"),
        max_leaves=8,
    )
)
def test_condition_arithmetic_is_c(text: str) -> None:
    assert evaluate_condition(tokenize_fragment(text, 1), 1) == int(eval(text))


def test_line_and_file(tmp_path: Path) -> None:
    text = (
        '__LINE__\n#define HERE __LINE__ __FILE__\n\nHERE\n#include "other.p4"\n#line 70 "was.p4"\n__LINE__ __FILE__'
    )
    run = Run(tmp_path, main=text, other="__LINE__ __FILE__")
    own, other = (f'"{tmp_path / name}"' for name in ("main.p4", "other.p4"))
    assert run.text == f'1 4 {own} 1 {other} 70 "was.p4"'
    assert run.errors == []


def test_line_in_a_condition(tmp_path: Path) -> None:
    assert Run(tmp_path, main="\n#if __LINE__ == 2\nyes\n#endif\n").text == "yes"
