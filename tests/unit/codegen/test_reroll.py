"""Rerolling: the loops, run by hand, give back the very lines that went in."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gradbed.switch.codegen.reroll import reroll


def unroll(lines: list[str]) -> list[str]:
    """The lines with loops executed."""
    result: list[str] = []
    at = 0
    while at < len(lines):
        head = re.fullmatch(r"for \(int lane = 0; lane < (\d+); lane\+\+\) \{", lines[at])
        if not head:
            result.append(lines[at])
            at += 1
            continue
        end = lines.index("}", at)
        for lane in range(int(head.group(1))):
            result.extend(at_lane(line, lane) for line in lines[at + 1 : end])
        at = end + 1
    return result


def at_lane(line: str, lane: int) -> str:
    """A loop's line in iteration `lane`."""

    def word(match: re.Match[str]) -> str:
        return f"{(int(match.group(1), 16) + int(match.group(2), 16) * lane) % 2**64}ULL"

    def number(match: re.Match[str]) -> str:
        step = int(match.group(3)) if match.group(2) == "+" else -int(match.group(3))
        return str(int(match.group(1)) + step * lane)

    line = re.sub(r"\((0x[0-9a-f]+)ULL \+ (0x[0-9a-f]+)ULL \* lane\)", word, line)
    return re.sub(r"\((\d+) ([+-]) (\d+) \* lane\)", number, line)


def plain(line: str) -> str:
    return re.sub(r"0x([0-9a-f]+)(?=ULL)", lambda m: str(int(m.group(1), 16)), line)


NUMBERS = st.one_of(st.integers(0, 20), st.sampled_from([0, 2**31 - 1, 1000]))
SHAPES = (
    "phv[{}] = phv[{}];",
    "phv[{}] = (phv[{}] + {}ULL) & 0xffffffffULL;",
    "gb_store32(at + {}, phv[{}]);",
    "if (phv[{}]) {{ error = {}; goto done; }}",
    "at_{}:;",
    "uint64_t key[{}];",
)


@st.composite
def runs(draw: st.DrawFn) -> list[str]:
    """Some statements repeated with integers that step, sometimes with one that spoils it."""
    period = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    starts = [[draw(NUMBERS) for _ in range(shape.count("{}"))] for shape in period]
    steps = [[draw(st.integers(0, 3)) for _ in row] for row in starts]
    lines = []
    for repeat in range(draw(st.integers(1, 9))):
        for shape, start, step in zip(period, starts, steps, strict=True):
            spoiled = draw(st.integers(0, 30)) == 0
            lines.append(shape.format(*(a + b * repeat + spoiled for a, b in zip(start, step, strict=True))))
    return lines


@given(st.lists(runs(), max_size=4))
def test_loops_execute_the_same_statements(parts: list[list[str]]) -> None:
    lines = [line for part in parts for line in part]
    assert [plain(line) for line in unroll(reroll(lines))] == [plain(line) for line in lines]


def test_arithmetic_progressions_become_one_loop() -> None:
    lines = []
    for i in range(100):
        lines += [f"phv[{10 + i}] = gb_load32(at + {4 * i});", f"gb_store32(to + {400 - 4 * i}, phv[{10 + i}]);"]
    assert reroll(lines) == [
        "for (int lane = 0; lane < 100; lane++) {",
        "phv[(10 + 1 * lane)] = gb_load32(at + (0 + 4 * lane));",
        "gb_store32(to + (400 - 4 * lane), phv[(10 + 1 * lane)]);",
        "}",
    ]


def test_numbers_in_names_and_strings_stay_apart() -> None:
    lines = [f"gb_log_{i}(sw, {i});" for i in range(8)] + [f'gb_log(sw, "{i}");' for i in range(8)]
    assert reroll(lines) == lines


def test_labels_and_declarations_stay_outside_loops() -> None:
    lines = (
        [f"at_{i}:;" for i in range(8)]
        + [f"uint64_t key[{i}];" for i in range(8)]
        + [f"if (phv[{i}]) {{" for i in range(8)]
    )
    assert reroll(lines) == lines


def test_literals_keep_their_type() -> None:
    lines = [f"phv[0] = phv[0] * {hex(2**64 - 1 - i)}ULL;" for i in range(5)]
    assert reroll(lines)[1] == "phv[0] = phv[0] * (0xffffffffffffffffULL + 0xffffffffffffffffULL * lane);"
