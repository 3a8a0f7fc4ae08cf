"""Errors that nobody foresaw: whatever they are, a line that says something reaches the user."""

from __future__ import annotations

import pytest

from gradbed.common.errors import unforeseen


def raised(source: str) -> Exception:
    try:
        exec(compile(source, "/somewhere/a folder/module.py", "exec"))
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\nnext(iter([]))", "StopIteration in a folder/module.py:2"),
        ("assert []", "AssertionError in a folder/module.py:1"),
        ("{}['kind']", "KeyError 'kind' in a folder/module.py:1"),
        ("raise TimeoutError", "TimeoutError in a folder/module.py:1"),
        ("raise ValueError('two\\n lines')", "ValueError: two lines"),
    ],
)
def test_one_line_that_says_something(source: str, line: str) -> None:
    assert unforeseen(raised(source)) == line


def test_one_that_was_never_raised() -> None:
    assert unforeseen(StopIteration()) == "StopIteration"
