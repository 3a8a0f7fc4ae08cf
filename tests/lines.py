"""python -m tests.lines: lines of code (Python, C, C++, P4) by folder, and in total."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = (".py", ".c", ".h", ".cc", ".p4")


def lines_by_folder(root: Path = ROOT) -> Counter[str]:
    """Return the lines of the files that git keeps, by folder or file at the top."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    lines: Counter[str] = Counter()
    for name in listed.split("\0"):
        path = root / name
        if name.endswith(CODE) and path.is_file():
            lines[name.split("/")[0]] += path.read_bytes().count(b"\n")
    return lines


if __name__ == "__main__":
    found = lines_by_folder()
    for folder, lines in [*found.most_common(), ("total", found.total())]:
        print(f"{lines:8,} {folder}")
