"""Command lines of other programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.switch.shims.command_line import Option, parse, usage

OPTIONS = (
    Option(("--interface", "-i"), "value", "a port"),
    Option(("--pcap",), "optional", "a folder"),
    Option(("--Wdisable",), "attached", "warnings"),
    Option(("--log-file",), "value", "a file"),
    Option(("--log-console",), help="log"),
    Option(("--nanolog",), "value", ignored="there is none"),
    Option(("--debugger", "--gdb"), ignored="there is no debugger"),
    Option(("--ssl",), refused="there is none"),
    Option(("-MD",), help="dependencies"),
)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (
            ["-i", "1@a", "--interface=2@b", "--interface", "3@c", "-i4@d"],
            {"--interface": ["1@a", "2@b", "3@c", "4@d"]},
        ),
        (["--pcap"], {"--pcap": [""]}),
        (["--pcap", "dir"], {"--pcap": ["dir"]}),
        (["--pcap=dir"], {"--pcap": ["dir"]}),
        (["--pcap", "--log-console"], {"--pcap": [""], "--log-console": [""]}),
        (["--Wdisable=unused"], {"--Wdisable": ["unused"]}),
        (["--interf", "1@a", "--log-c"], {"--interface": ["1@a"], "--log-console": [""]}),
        (["-MD"], {"-MD": [""]}),
        (["--log-file", "-odd"], {"--log-file": ["-odd"]}),
    ],
)
def test_values(arguments: list[str], values: dict[str, list[str]]) -> None:
    line = parse(OPTIONS, arguments)
    assert line.values == values
    assert (line.positional, line.unknown, line.notes) == ([], [], [])


def test_what_is_no_option() -> None:
    line = parse(OPTIONS, ["a.json", "--Wdisable", "b", "-", "--", "--log-console", "c"])
    assert line.positional == ["a.json", "b", "-"]
    assert line.behind_dashes == ["--log-console", "c"]
    assert line.values == {"--Wdisable": [""]}


def test_unknown_and_ambiguous_options_are_left() -> None:
    assert parse(OPTIONS, ["--nonsense=3", "-q", "--log", "-MDx"]).unknown == ["--nonsense=3", "-q", "--log", "-MDx"]


def test_the_person_is_told_what_has_no_effect() -> None:
    line = parse(OPTIONS, ["--nanolog=ipc:x", "--gdb"])
    assert line.notes == ["--nanolog has no effect: there is none", "--gdb has no effect: there is no debugger"]
    assert line.values == {"--nanolog": ["ipc:x"], "--debugger": [""]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ssl"], "--ssl: there is none"),
        (["-i"], "--interface needs a value"),
        (["--log-console=yes"], "--log-console takes no value"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(OPTIONS, arguments)


def test_numbers() -> None:
    line = parse(OPTIONS, ["--log-file", "3", "--log-file", "17"])
    assert line.number("--log-file") == 17
    assert line.number("--interface") is None
    with pytest.raises(UserError, match="--log-file takes a number from 18 on, not '17'"):
        line.number("--log-file", least=18)
    with pytest.raises(UserError, match="not 'x'"):
        parse(OPTIONS, ["--log-file", "x"]).number("--log-file")


def test_usage_names_every_option() -> None:
    text = usage(OPTIONS)
    assert all(name in text for option in OPTIONS for name in option.names)
    assert "(refused: there is none)" in text
    assert "(no effect: there is no debugger)" in text


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_arguments_are_sorted_or_refused(arguments: list[str]) -> None:
    try:
        line = parse(OPTIONS, arguments)
    except UserError as error:
        assert "\n" not in str(error) or any("\n" in argument for argument in arguments)
        return
    taken = sum(len(values) for values in line.values.values())
    assert taken + len(line.positional) + len(line.behind_dashes) + len(line.unknown) <= len(arguments)
