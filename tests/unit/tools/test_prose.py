"""tools/prose.py finds long sentences and paths that do not exist, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.prose import LONGEST_WORDS, ROOT, findings, main, sentences

TEXT = """# A heading

One [link of four words](there.md) and `code of three`. Two
goes on: three; four?

```
no sentence
```
- an item
- another one (**bold.**) Last.

| a | row |
"""


def test_what_a_sentence_is() -> None:
    assert list(sentences(TEXT)) == [
        (3, "One link of four words and code."),
        (3, "Two goes on:"),
        (4, "three;"),
        (4, "four?"),
        (9, "an item"),
        (10, "another one (**bold.**)"),
        (10, "Last."),
    ]


@pytest.mark.parametrize(("words", "found"), [(LONGEST_WORDS, []), (LONGEST_WORDS + 1, [3])])
def test_a_long_sentence_is_found_at_its_line(words: int, found: list[int]) -> None:
    text = f"A first one.\n\n{' '.join(['word'] * words)}. Another one.\n"
    assert [finding.line for finding in findings(text, ROOT)] == found


def test_paths_that_do_not_exist_are_found() -> None:
    text = (
        "[a](docs/nothing.md#top)\n`p4src/nothing.p4`\n`nothing.py`\n"
        "`p4src/*.p4` [b](README.md) `results/x` `a/b` `p4src/NAME.p4`\n```\n`p4src/nothing.p4`\n```\n"
    )
    found = findings(text, ROOT)
    assert [finding.line for finding in found] == [1, 2, 3]
    assert [finding.text.split(": ")[1] for finding in found] == [
        "docs/nothing.md#top",
        "p4src/nothing.p4",
        "nothing.py",
    ]


def test_the_command_prints_places_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("Short.\n\n[gone](gone.md)\n")
    assert main([str(page)]) == 1
    assert capsys.readouterr().out == f"{page}:3: no such file: gone.md\n"
    page.write_text("Short.\n")
    assert main([str(page)]) == 0
    assert capsys.readouterr().out == ""


def test_a_page_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.md")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'none.md'}: No such file or directory\n"
