"""python -m tools.types [FILE...]: check types with mypy.

mypy finds a package by the name of its folder, and the folder of `gradbed` is called api here, with the others beside
it. So it is given a folder of links by these names. Messages name the files themselves. Without FILE all is checked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.modules import FOLDERS

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / ".mypy_cache" / "packages"
"""The mypy_path of pyproject.toml."""


def link_packages() -> Path:
    """Create the folder of links, and return the one for `gradbed`."""
    package = PACKAGES / "gradbed"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for path in [*(ROOT / "api").glob("*.py"), *(ROOT / name for name in FOLDERS)]:
        (package / path.name).symlink_to(path)
    return package


def main(files: Sequence[str]) -> int:
    """Check these files, or all; print mypy's messages with the files' own names, and return its status."""
    package = link_packages()
    # mypy takes a file or, as pyproject.toml has it, all packages.
    checked = [str(_linked(Path(file).resolve(), package)) for file in files]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *checked], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    shown = str(package.relative_to(ROOT))
    for line in done.stdout.splitlines():
        print(_own_name(line, shown))
    return done.returncode


def _linked(file: Path, package: Path) -> Path:
    """Return the path under which mypy knows a file."""
    inside = file.relative_to(ROOT)
    if inside.parts[0] == "api":
        return package.joinpath(*inside.parts[1:])
    return package / inside if inside.parts[0] in FOLDERS else file


def _own_name(line: str, package: str) -> str:
    if not line.startswith(f"{package}/"):
        return line
    inside = line.removeprefix(f"{package}/")
    return inside if inside.partition("/")[0] in FOLDERS else f"api/{inside}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
