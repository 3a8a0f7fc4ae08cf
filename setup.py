"""Packaging. Tool settings are in pyproject.toml, what commands need in requirements/.

What is installed is one package, `gradbed`: api/, and in gradbed._rooms the rooms of the checkout. These are
top-level packages here (`from topo.graph import Topology`), and their names are too plain to share with a user's own
modules. So the build writes their imports anew (`from gradbed._rooms.topo.graph import Topology`); common/modules.py
does the same for modules that are named in strings. `pip install -e` leaves everything where it is.
"""

import ast
import runpy
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
PLACE = "gradbed._rooms"
ROOMS = runpy.run_path(str(HERE / "common" / "modules.py"))["ROOMS"]
DATA = ("p4src", "requirements")
"""Folders without modules, which stand beside the rooms."""

IS_EDITABLE = "editable_wheel" in sys.argv or "develop" in sys.argv


def requirements(layer: str) -> list[str]:
    """What a layer needs, with the layers that it builds on."""
    found: list[str] = []
    for line in (HERE / "requirements" / f"{layer}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r ").removesuffix(".txt"))
        elif line and not line.startswith("#"):
            found.append(line)
    return list(dict.fromkeys(found))


class BuildWithRooms(build_py):
    """Also copies the rooms, all files of theirs, with their imports written anew."""

    def run(self) -> None:
        if not self.editable_mode:
            # What an earlier build has left there may be of files that are gone.
            shutil.rmtree(Path(self.build_lib, "gradbed"), ignore_errors=True)
        super().run()
        if self.editable_mode:
            return
        package = Path(self.build_lib, "gradbed")
        rooms = package / PLACE.partition(".")[2]
        for name in (*ROOMS, *DATA):
            shutil.copytree(
                HERE / name, rooms / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "*~")
            )
        (rooms / "__init__.py").write_text('"""gradbed\'s own modules. Programs of others import gradbed."""\n')
        for file in package.rglob("*.py"):
            file.write_text(with_moved_imports(file.read_text(encoding="utf-8"), str(file)), encoding="utf-8")


def with_moved_imports(text: str, where: str) -> str:
    """The text of a module with the rooms' names in its imports below PLACE.

    ValueError for one that cannot be moved: `import topo.graph` without `as` would need another name in the code.
    """
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_room(node.module or ""):
            old, new = f"from {node.module} ", f"from {PLACE}.{node.module} "
        elif isinstance(node, ast.Import) and any(_is_room(alias.name) for alias in node.names):
            if len(node.names) > 1 or node.names[0].asname is None:
                raise ValueError(f"{where}:{node.lineno}: write `from ... import ...`, or `import ... as ...`")
            old, new = f"import {node.names[0].name} ", f"import {PLACE}.{node.names[0].name} "
        else:
            continue
        line = lines[node.lineno - 1]
        if old not in line[node.col_offset :]:
            raise ValueError(f"{where}:{node.lineno}: expected {old!r} here")
        lines[node.lineno - 1] = line[: node.col_offset] + line[node.col_offset :].replace(old, new, 1)
    return "".join(lines)


def _is_room(module: str) -> bool:
    return module.partition(".")[0] in ROOMS


setup(
    name="gradbed",
    version=runpy.run_path(str(HERE / "common" / "version.py"))["VERSION"],
    description="Packet-level testbed for the networks of distributed machine learning",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=["gradbed", *(find_packages(include=[f"{name}*" for name in ROOMS]) if IS_EDITABLE else [])],
    package_dir={"gradbed": "api"},
    package_data={"gradbed": ["py.typed"]},
    install_requires=[*requirements("base"), *requirements("api")],
    extras_require={file.stem: requirements(file.stem) for file in sorted((HERE / "requirements").glob("*.txt"))},
    entry_points={"console_scripts": ["gradbed = gradbed.__main__:start"]},
    cmdclass={"build_py": BuildWithRooms},
)
