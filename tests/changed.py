"""python -m tests.changed: print the test files that concern what has changed since the last commit, one in a line.

Those are the tests that kill the mutants of a changed file (tests/mutants), those that import it, and tests that have
changed themselves. `./gradbed test --changed` runs them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.mutants.entries import lists, mutants_of

ROOT = Path(__file__).resolve().parents[1]


def changed_files(root: Path) -> list[str]:
    """Return the paths of what differs from the last commit, new files included. CalledProcessError without git."""
    git = ["git", "-C", str(root)]
    differ = [*git, "diff", "--name-only", "--relative", "HEAD"]
    new = [*git, "ls-files", "--others", "--exclude-standard"]
    said = [subprocess.run(line, capture_output=True, text=True, check=True).stdout for line in (differ, new)]
    return sorted({path for text in said for path in text.splitlines()})


def tests_of(changed: Iterable[str], root: Path) -> list[str]:
    """Return the paths of the test files to run for these changed files, in order and each once."""
    files = set(changed)
    found = {path for path in files if _is_test(Path(path))}
    for name in lists():
        for mutant in mutants_of(name):
            if mutant.file in files:
                found |= {test.split("::")[0] for test in mutant.tests}
    modules = {module for path in files if (module := _module(path))}
    if modules:
        found |= {path.relative_to(root).as_posix() for path in _test_files(root) if modules & set(_imported(path))}
    return sorted(path for path in found if (root / path).exists())


def _is_test(path: Path) -> bool:
    return path.parts[0] == "tests" and path.name.startswith("test_") and path.suffix == ".py"


def _test_files(root: Path) -> Iterator[Path]:
    return (root / "tests").rglob("test_*.py")


def _module(path: str) -> str:
    """The full name of a Python file's module; nothing for other files."""
    if not path.endswith(".py"):
        return ""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(path: Path) -> Iterator[str]:
    """Names of modules, and of what is taken from them, which may be modules, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def main() -> int:
    """Print the paths; return the exit status."""
    try:
        changed = changed_files(ROOT)
    except (OSError, subprocess.CalledProcessError):
        return 2
    print(*tests_of(changed, ROOT), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
