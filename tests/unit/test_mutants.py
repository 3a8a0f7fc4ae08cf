"""The lists of mutants fit the code: each pattern is in its function once, whatever names are there; tests exist."""

from __future__ import annotations

import json
import re

import pytest

from tests.mutants.__main__ import main, run_failure
from tests.mutants.entries import ROOT, Mutant, lists, mutants_of
from tests.mutants.places import BRACES_TOKEN, PYTHON_TOKEN, NotOnce, function_at, replaced
from tests.mutants.table import tables

PYTHON = """
class Queue:
    def put(self, packet):
        if self.length + packet.size > self.limit:  # full
            self.drops += 1
            return False
        return True

    def get(self):
        return self.length + 1


def put(packet):
    return packet.size
"""
C = """
#define LIMIT 3
static int table[] = {1, 2, 3};
static int put(struct queue *queue, int size) {
    if (queue->length > LIMIT) { /* { */
        return 0; // }
    }
    return size + 1;
}
int get(struct queue *queue) { return queue->length > LIMIT; }
"""
P4 = """
control Slots(inout headers_t hdr)(bit<8> size) {
    action add(bit<8> by) { hdr.sum = hdr.sum + by; }
    table sums { key = { hdr.sum: exact; } actions = { add; } }
    apply {
        if (hdr.sum == 0) { add(1); } else { add(2); }
    }
}
parser P(packet_in packet) { state start { packet.extract(hdr.sum); transition accept; } }
"""


@pytest.mark.parametrize("name", lists())
def test_each_can_be_made(name: str) -> None:
    for mutant in mutants_of(name):
        assert mutant.mutated() != (ROOT / mutant.file).read_text(encoding="utf-8")
        for target in mutant.tests:
            path, *names = target.split("::")
            assert (ROOT / path).exists(), f"{target} of {mutant.file}: no such tests"
            text = (ROOT / path).read_text(encoding="utf-8") if names else ""
            assert all(part.split("[")[0] in text for part in names), f"{target} is not there"


@pytest.mark.commit_cases(1)
@pytest.mark.parametrize("name", lists())
def test_a_new_name_breaks_none(name: str) -> None:
    """Whatever `$name` stands for is renamed in the whole file, one by one."""
    for mutant in mutants_of(name):
        path = ROOT / mutant.file
        text = path.read_text(encoding="utf-8")
        for wild in set(re.findall(r"\$(\w+)", mutant.pattern)):
            renamed = _renamed(text, path.suffix, wild)
            function = _renamed(mutant.function, path.suffix, wild)
            made = replaced(renamed, path.suffix, function, mutant.pattern, mutant.by)
            assert made == _renamed(mutant.mutated(), path.suffix, wild), mutant


def _renamed(text: str, suffix: str, name: str) -> str:
    """But for strings and comments, where it may be a word."""
    token = PYTHON_TOKEN if suffix == ".py" else BRACES_TOKEN
    return token.sub(lambda found: f"{name}_with_another_name" if found[0] == name else found[0], text)


@pytest.mark.parametrize(
    ("suffix", "text", "word", "function"),
    [
        (".py", PYTHON, "drops", "Queue.put"),
        (".py", PYTHON, "1\n\n\n", "Queue.get"),
        (".py", PYTHON, "packet.size\n", "put"),
        (".py", PYTHON, "class", "Queue"),
        (".c", C, "2, 3", "table"),
        (".c", C, "return 0", "put"),
        (".c", C, "size + 1", "put"),
        (".c", C, "length > LIMIT; }", "get"),
        (".c", C, "#define", ""),
        (".p4", P4, "hdr.sum = ", "Slots.add"),
        (".p4", P4, "exact", "Slots.sums"),
        (".p4", P4, "add(2)", "Slots.apply"),
        (".p4", P4, "packet.extract", "P.start"),
    ],
)
def test_the_function_around_a_place(suffix: str, text: str, word: str, function: str) -> None:
    assert function_at(text, suffix, text.index(word)) == function


@pytest.mark.parametrize(
    ("function", "pattern", "by", "old", "new"),
    [
        ("Queue.put", "$a + $b.$c > $d", "$a > $d", "length + packet.size > self.limit", "length > self.limit"),
        ("Queue.put", "self . drops+=1", "pass", "self.drops += 1", "pass"),
        ("Queue.put", "self.drops += 1", "", "            self.drops += 1\n", ""),
        ("Queue.put", "return True", "x = 1\nreturn x", "return True", "x = 1\n        return x"),
        ("Queue.get", "self.length", "0", "return self.length", "return 0"),
        ("", "drops", "losses", "drops", "losses"),
    ],
)
def test_what_a_pattern_replaces(function: str, pattern: str, by: str, old: str, new: str) -> None:
    assert PYTHON.count(old) == 1
    assert replaced(PYTHON, ".py", function, pattern, by) == PYTHON.replace(old, new)


@pytest.mark.parametrize(
    ("function", "pattern"),
    [
        ("Queue.put", "return"),
        ("Queue.put", "self.length + 1"),
        ("Queue.take", "return"),
        ("Queue.put", "self.$name + self.$name"),
        ("put", "$a.$a"),
        ("", "# full"),
    ],
)
def test_what_is_not_there_once_is_refused(function: str, pattern: str) -> None:
    with pytest.raises(NotOnce):
        replaced(PYTHON, ".py", function, pattern, "")


def test_a_name_stands_for_one_identifier_and_two_names_for_two() -> None:
    text = "def f(a, b):\n    return a + b, a + a, a * a, a * b\n"
    assert replaced(text, ".py", "f", "$x + $y", "0") == text.replace("a + b", "0")
    assert replaced(text, ".py", "f", "$x * $x", "0") == text.replace("a * a", "0")


def test_a_mutant_of_no_place_names_its_file() -> None:
    mutant = Mutant(file="setup.py", pattern="nothing of the kind", by="", tests=["tests"])
    with pytest.raises(NotOnce, match=r"^setup\.py: "):
        mutant.mutated()


def test_the_documented_tables_are_those_of_the_lists() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert tables() in text, "docs/testing.md: put in what `python -m tests.mutants --table` prints"


@pytest.mark.thorough
def test_the_run_of_an_entry_starts() -> None:
    """Without that, each list with runs would end before its first mutant."""
    topology = {"kind": "optical-electrical:2", "link": {"rate_mbps": 100, "delay_us": 5}}
    run = {"system": "interconnect", "topology": topology, "traffic": {"load": 0.5, "duration_ms": 5}}
    assert run_failure(ROOT, json.dumps(run)) == ""
    assert "KeyError: 'system'" in run_failure(ROOT, "{}")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_command_says_how_it_is_used(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option]) == 0
    assert capsys.readouterr().out.startswith("python -m tests.mutants [NAME...]: ")
