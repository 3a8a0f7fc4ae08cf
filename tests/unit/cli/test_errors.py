"""Wrong input: one clear line on standard error and exit status 2."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def gradbed(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "aggregation", "--topology", "fat-tree:3"], ["even", "3"]),
        (["run", "aggregation", "--topology", "fat-tree:x"], ["fat-tree"]),
        (["run", "aggregation", "--topology", "torus:4"], ["torus"]),
        (["run", "aggregation", "--workers", "16"], ["16 workers", "16"]),
        (["run", "aggregation", "--workers", "0"], ["--workers", "0"]),
        (["run", "aggregation", "--workers", "many"], ["--workers", "integer"]),
        (["run", "aggregation", "--loss", "1.5"], ["--loss", "1.5"]),
        (["run", "aggregation", "--lanes", "100"], ["--lanes", "32"]),
        (["run", "aggregation", "--switch", "tofino"], ["--switch", "bmv2"]),
        (["run", "aggregation", "--fast"], ["--fast"]),
        (["run", "agregation"], ["agregation"]),
        (["p4", "compile", "absent.p4"], ["absent.p4"]),
        (["rnu"], ["rnu"]),
    ],
)
def test_one_line_and_status_2(arguments: list[str], words: list[str]) -> None:
    outcome = gradbed(*arguments)
    assert outcome.returncode == 2, outcome
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert outcome.stderr.startswith("gradbed: ")
    assert all(word in outcome.stderr for word in words), outcome.stderr


def test_a_p4_syntax_error_shows_place_line_and_caret(tmp_path: Path) -> None:
    source = tmp_path / "broken.p4"
    source.write_text("#include <core.p4>\n\nheader ethernet_t {\n    bit<48> dst_addr\n    bit<48> src_addr;\n}\n")
    outcome = gradbed("p4", "compile", str(source))
    assert outcome.returncode == 2
    assert "Traceback" not in outcome.stderr
    first, shown, caret = outcome.stderr.splitlines()
    assert first == f"{source}:4:21: error: expected ';' behind the field"
    assert shown == "    bit<48> dst_addr"
    assert caret.index("^") == len(shown)


def test_no_c_compiler(tmp_path: Path) -> None:
    outcome = gradbed("run", "aggregation", CC="no-such-compiler", GRADBED_CACHE=str(tmp_path))
    assert outcome.returncode == 2
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert "no C compiler found (no-such-compiler)" in outcome.stderr


def test_not_root() -> None:
    outcome = subprocess.run(
        [
            *("setpriv", "--reuid=65534", "--clear-groups"),
            *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),  # the checkout may be in /root
            *(sys.executable, "-m", "cli", "run", "aggregation"),
        ],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert outcome.returncode == 2, outcome
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert "root" in outcome.stderr
