"""Which repository a folder is a checkout of, and which groups of tests it has."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ToolHere
from tools.conformance.suites import SUITES, Checkout, find_checkout, read_version
from tools.conformance.suites.result import SuiteResult
from tools.conformance.suites.run import groups_of

FILES = {
    "PI": "proto/ptf/base_test.py proto/ptf/bmv2/port_map.json proto/ptf/fwd/fwd.p4 proto/ptf/fwd/test/fwd.py "
    "proto/ptf/bare/bare.p4",
    "p4-guide": "ptf-tests/one/runptf.sh testlib/base.py two/init-runptf.sh two/p4testgen-runptf.sh "
    "ipdk/three/runptf.sh",
    "finsy": "finsy/__init__.py tests/conftest.py examples/tests/conftest.py",
    "p4runtime-shell": "p4runtime_sh/shell.py p4runtime_sh/test.py",
    "tutorials": "utils/run_exercise.py exercises/a/Makefile exercises/a/runptf.sh exercises/a/solution/a.p4 "
    "exercises/b/Makefile",
}


def checkout(folder: Path, name: str) -> Checkout:
    for file in FILES[name].split():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    found = find_checkout(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("name", FILES)
def test_each_is_found_by_its_files(name: str, tmp_path: Path) -> None:
    assert checkout(tmp_path, name).suite.name == name
    assert {suite.name for suite in SUITES} == FILES.keys()


def test_no_checkout(tmp_path: Path) -> None:
    (tmp_path / "ptf-tests").mkdir()
    assert find_checkout(tmp_path) is None
    assert find_checkout(tmp_path / "nowhere") is None


def test_groups(tmp_path: Path) -> None:
    of = {name: groups_of(checkout(tmp_path / name, name)) for name in FILES}
    assert {name: [*groups] for name, groups in of.items()} == {
        "PI": ["fwd"],
        "p4-guide": ["ipdk/three", "ptf-tests/one", "two/init", "two/p4testgen"],
        "finsy": ["tests"],
        "p4runtime-shell": ["tests"],
        "tutorials": ["test/a", "run/a"],
    }
    left_out = {name: group.reason for name, group in of["p4-guide"].items() if isinstance(group, SuiteResult)}
    assert left_out == {
        "ipdk/three": "a program for PNA or DPDK",
        "two/p4testgen": "needs what p4testgen wrote",
    }


def test_examples_of_finsy_that_need_more(tmp_path: Path) -> None:
    found = checkout(tmp_path, "finsy")
    networks = {"a": 'Switch("s1")', "b": 'Switch("s1", model="stratum")', "c": 'Image("x")'}
    for name, network in networks.items():
        (tmp_path / f"examples/{name}/net").mkdir(parents=True)
        (tmp_path / f"examples/{name}/net/run.py").write_text(network)
        (tmp_path / f"examples/tests/test_{name}.py").write_text(f'DIR = "{name}"')
    reasons = {name: group.reason for name, group in groups_of(found).items() if isinstance(group, SuiteResult)}
    assert reasons == {"examples/b": "needs Stratum, another switch", "examples/c": "needs a container"}


def test_commit_and_date(tmp_path: Path) -> None:
    assert read_version(tmp_path) is None
    environment = {"GIT_COMMITTER_DATE": "2026-08-07T12:00:00Z", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, env=environment, check=True)
    version = read_version(tmp_path)
    assert version is not None and re.fullmatch(r"[0-9a-f]{7} of 2026-08-07", version)
    (tmp_path / "below").mkdir()
    assert read_version(tmp_path / "below") is None


def test_a_folder_of_none_of_them(tmp_path: Path, tool_here: ToolHere) -> None:
    ended = tool_here("conformance", str(tmp_path))
    assert (ended.status, ended.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["--only", "none"], "p4-guide has no tests none: there are"),
        (["--errors"], "leave out --errors"),
        (["--switch", "bmv2"], "leave out --errors"),
    ],
)
def test_what_cannot_be_asked(more: list[str], expected: str, tmp_path: Path, tool_here: ToolHere) -> None:
    checkout(tmp_path, "p4-guide")
    ended = tool_here("conformance", str(tmp_path), *more)
    assert ended.status == 2 and expected in " ".join(ended.err.split())
