"""Which packages there are, and which may import which (docs/architecture.md).

A subpackage is a folder, or a module beside folders. Its contents are checked again: no cycles at any depth, neither
of subpackages nor of modules. Imports under TYPE_CHECKING count, too: whoever reads one end of a cycle has to read
the other. There are no exceptions.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT = {
    "common": set[str](),
    "formats": {"common"},
    "topo": {"common"},
    "switch": {"topo", "common"},
    "emulation": {"switch", "topo", "common"},
    "controller": {"switch", "formats", "topo", "common"},
    "hosts": {"formats", "topo", "common"},
    "experiments": {"controller", "hosts", "emulation", "switch", "formats", "topo", "common"},
    "api": {"experiments", "controller", "hosts", "emulation", "switch", "formats", "topo", "common"},
    "cli": {"experiments", "controller", "hosts", "emulation", "switch", "formats", "topo", "common"},
}

API = "api"
"""Its modules are gradbed.NAME, beside the other packages. People import them; nothing of ours does."""

TOOLS = "tools"
"""What only maintainers run. It may import every package, and no package imports it: the wheel is without it."""

RUNS_TOOLS = {"cli/commands/test.py"}
"""Starts tools as processes, in a checkout alone."""

UNNAMED = "without gradbed: "

COMMAND_LINE_OF_THE_API = "api/__main__.py"
"""`python -m gradbed`: where cli begins."""

SUBPACKAGES = {
    "switch": (
        "bmv2_json codegen compiler engine insight p4lang p4runtime reference runtime server "
        "shims simple_switch state stf virtual"
    ),
    "topo": "files",
    "emulation": "switches",
    "controller": "core entries planning rest southbound systems",
    "hosts": "agents collectives compressors learning protocols systems torch_hook traffic transport",
    "experiments": (
        "configuration conservation engine exercises live plotting prompt results runtimes sessions "
        "study systems tables traffic validity"
    ),
    "cli": "commands p4 site",
    TOOLS: "bench conformance corpus recordings",
}
"""The folders of each package: a new one is named here and in docs/architecture.md."""

PLUGIN_DOOR = "api/plugin.py"
"""It alone may lead to a system's modules: what plug-ins of systems are called with (docs/plugins.md)."""

LISTS_OF_SYSTEMS = {"experiments/systems/__init__.py"}
"""Of all shared files the only ones that name a system's modules."""

NEEDS_A_NETWORK = {"grpc", "finsy", "os_ken", "mininet", "pyroute2", "scapy", "socket", "subprocess", "ctypes"}


def files(folder: str | Path) -> list[Path]:
    path = ROOT / folder
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path, *, for_types: bool = True) -> tuple[str, ...]:
    """Full names of what a file imports, wherever it does, those of this tree by their places: topo.graph for
    gradbed.topo.graph, api.networks for gradbed.networks. for_types: under TYPE_CHECKING, too."""
    return tuple(map(place_of, names_imported(path.read_text(), for_types=for_types)))


def place_of(name: str) -> str:
    """The name of ours without `gradbed`; that of another package as it is, and one of ours that does without
    `gradbed` as UNNAMED."""
    first, *others = name.split(".")
    if first in MAY_IMPORT:
        return UNNAMED + name
    if first != "gradbed":
        return name
    return ".".join(others if others and others[0] in MAY_IMPORT else [API, *others])


def names_imported(text: str, *, for_types: bool = True) -> Iterator[str]:
    tree = ast.parse(text)
    left_out: set[ast.AST] = set()
    if not for_types:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                left_out |= {inner for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def folders_with_subpackages(package: str) -> set[Path]:
    """Folders with modules in folders of their own, relative to the tree."""
    return {path.parent.parent.relative_to(ROOT) for path in files(package) if path.parent != ROOT / package}


def is_in(name: str, module: str) -> bool:
    return f"{name}.".startswith(f"{module}.")


# ---- One way ----


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_arrows_point_one_way(package: str) -> None:
    wrong = [
        f"{shown(path)} imports {name}"
        for path in files(package)
        if "templates" not in path.parts
        for name in imports(path)
        if (top := name.split(".")[0]) in {*MAY_IMPORT, "tests", "tools"}
        and top not in {package, *MAY_IMPORT[package]}
        and shown(path) != COMMAND_LINE_OF_THE_API
    ]
    assert wrong == []


def test_no_package_names_tools_and_tools_import_no_tests() -> None:
    """Not in strings either: "module:function" is an import, too."""
    named = re.compile(r"(?<![\w./])tools[./](?:bench|conformance|corpus|recordings|prose|types)\b")
    wrong = [
        f"{shown(path)}:{number}: {line.strip()}"
        for package in MAY_IMPORT
        for path in files(package)
        if shown(path) not in RUNS_TOOLS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if named.search(line)
    ]
    wrong += [
        f"{shown(path)} imports {name}" for path in files(TOOLS) for name in imports(path) if is_in(name, "tests")
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", [*MAY_IMPORT, "tests", "tools", "examples"])
def test_modules_have_one_name(folder: str) -> None:
    """gradbed.topo.graph is never topo.graph: Python would load it twice. Names in a package are in full."""
    wrong = [
        f"{shown(path)} imports {name}"
        for path in files(folder)
        if "templates" not in path.parts
        for name in imports(path)
        if name.startswith((UNNAMED, "."))
    ]
    assert wrong == []
    assert place_of("topo.graph").startswith(UNNAMED) and place_of("gradbed.topo.graph") == "topo.graph"


@pytest.mark.parametrize("package", SUBPACKAGES)
def test_every_subpackage_is_known(package: str) -> None:
    found = {path.parent.name for path in (ROOT / package).glob("*/*.py")}
    assert found == set(SUBPACKAGES[package].split())


# ---- No cycles ----


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the packages and of tools by its full name."""
    found = {}
    for package in (*MAY_IMPORT, TOOLS):
        for path in files(package):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def links(*, for_types: bool = True) -> frozenset[tuple[str, str]]:
    """(importer, imported) of all modules; a name inside a module stands for the module."""
    found = set()
    for module, path in modules().items():
        for name in imports(path, for_types=for_types):
            target = name
            while target and target not in modules():
                target = target.rpartition(".")[0]
            if target and target != module:
                found.add((module, target))
    return frozenset(found)


def subpackage_of(module: str, folder: str) -> str:
    """Return the subpackage of a folder that a module is in; every system is one, the folder's __init__ is none."""
    first, *others = module.removeprefix(folder).lstrip(".").split(".")
    return f"systems.{others[0]}" if first == "systems" and others else first


def cycles(folder: str, of: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Of the subpackages directly in a folder ("switch.compiler"), those that import each other."""
    graph: nx.DiGraph = nx.DiGraph()
    for importer, imported in of:
        if is_in(importer, folder) and is_in(imported, folder):
            a, b = (subpackage_of(name, folder) for name in (importer, imported))
            if a and b and a != b:
                graph.add_edge(a, b)
    return cyclic_groups(graph)


def cyclic_groups(graph: nx.DiGraph) -> list[list[str]]:
    """Nodes that reach each other."""
    return sorted(sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1)


FOLDERS = sorted(
    {*SUBPACKAGES} | {".".join(path.parts) for package in SUBPACKAGES for path in folders_with_subpackages(package)}
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_subpackages_do_not_import_each_other_in_a_cycle(folder: str) -> None:
    assert cycles(folder, links()) == []


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    assert cyclic_groups(nx.DiGraph(list(links()))) == []


def test_a_cycle_is_found() -> None:
    made = [("a.x.one", "a.y.two"), ("a.y.three", "a.z"), ("a.z", "a.x.four"), ("a.x.one", "a.w")]
    assert cycles("a", made) == [["x", "y", "z"]]
    assert cycles("a.x", made) == []


def test_an_import_for_the_type_checker_counts() -> None:
    text = "if TYPE_CHECKING:\n    from a.b import C\n"
    assert list(names_imported(text)) == ["a.b.C"]
    assert list(names_imported(text, for_types=False)) == []


# ---- The reference of P4 ----

OF_THE_REFERENCE = (
    "common",
    "switch.reference",
    "switch.stf.parser",
    "switch.stf.statements",
)
"""What the reference for P4 may use: the reader of STF files knows no program."""


def test_the_reference_shares_no_code_with_compiler_and_data_plane() -> None:
    """Or a mistake of both would look like agreement."""
    waiting = [module for module in modules() if is_in(module, "switch.reference")]
    reached = set(waiting)
    wrong = []
    while waiting:
        module = waiting.pop()
        for name in imports(modules()[module]):
            ours = name.split(".")[0] in MAY_IMPORT
            if ours and not any(is_in(name, of) for of in OF_THE_REFERENCE):
                wrong.append(f"{module} imports {name}")
        found = {imported for importer, imported in links() if importer == module} - reached
        reached |= found
        waiting += [name for name in found if is_in(name, "switch")]
    assert len(reached) > 5 and wrong == []


# ---- Systems ----


@cache
def system_folders() -> Mapping[str, tuple[str, ...]]:
    """System -> its modules' folders, such as controller.systems.aggregation, and its formats."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in MAY_IMPORT:
        for path in sorted((ROOT / package / "systems").glob("*/__init__.py")):
            found[path.parent.name].append(f"{package}.systems.{path.parent.name}")
    for name in found:
        if (ROOT / "formats" / f"{name}.py").exists():
            found[name].append(f"formats.{name}")
    return {name: tuple(folders) for name, folders in found.items()}


def test_systems_are_those_of_the_list() -> None:
    from gradbed.experiments.systems import SYSTEMS

    # Other tests add systems of their own to the list.
    listed = {name for name, place in SYSTEMS.items() if place.startswith("gradbed.experiments.systems.")}
    assert set(system_folders()) == listed


def system_of(name: str) -> str | None:
    """Whose module this is; None: a shared one."""
    for system, folders in system_folders().items():
        if any(is_in(name, folder) for folder in folders):
            return system
    return None


def test_no_system_imports_another_and_shared_subpackages_import_none() -> None:
    wrong = [
        f"{shown(path)} imports {name}"
        for module, path in modules().items()
        for name in imports(path)
        if not is_in(module, TOOLS) and (target := system_of(name)) is not None and target != system_of(module)
        if shown(path) != PLUGIN_DOOR
    ]
    assert wrong == []


def test_shared_subpackages_do_not_name_a_systems_modules() -> None:
    """Not in strings, docstrings or comments either: "module:function" is an import, too."""
    pattern = re.compile(rf"systems[./](?:{'|'.join(system_folders())})\b")
    wrong = [
        f"{shown(path)}:{number}: {line.strip()}"
        for module, path in modules().items()
        if system_of(module) is None
        and shown(path) not in (*LISTS_OF_SYSTEMS, PLUGIN_DOOR)
        and not is_in(module, TOOLS)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert wrong == []


# ---- What needs no root ----

PLANNERS = [
    shown(path)
    for path in sorted((ROOT / "controller/systems").iterdir())
    if path.is_dir() and any(path.glob("*.py"))
]


@pytest.mark.parametrize("place", ["controller/planning", *PLANNERS, "hosts/compressors", "hosts/learning"])
def test_planners_and_learning_need_neither_root_nor_network(place: str) -> None:
    """Nor do the modules of ours that they import, however far."""
    of: dict[str, set[str]] = defaultdict(set)
    for importer, imported in links(for_types=False):
        of[importer].add(imported)
    start = [module for module, path in modules().items() if shown(path).startswith(f"{place}/")]
    reached, waiting = set(start), list(start)
    while waiting:
        for module in of[waiting.pop()] - reached:
            reached.add(module)
            waiting.append(module)
    wrong = [
        f"{shown(modules()[module])} imports {name}"
        for module in sorted(reached)
        for name in imports(modules()[module], for_types=False)
        if name.split(".")[0] in NEEDS_A_NETWORK
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "subpackage",
    [
        "collectives",
        "compressors",
        "learning",
        "protocols",
        "systems",
        "torch_hook",
        "traffic",
        "transport",
        "agents/context.py",
    ],
)
def test_agents_know_time_and_network_by_their_context_alone(subpackage: str) -> None:
    """hosts/agents/kernel/context.py is what asks the kernel, so that another clock can take its place. A library.py
    loads a subpackage's own C, which asks nobody."""
    asking = ("time", "select", "selectors", "socket", "ctypes", "hosts.agents.kernel.context")
    wrong = [
        f"{shown(path)} imports {name}"
        for path in files(f"hosts/{subpackage}")
        for name in imports(path)
        if any(is_in(name, module) for module in asking) and not (path.name == "library.py" and is_in(name, "ctypes"))
    ]
    assert wrong == []


NEWER = {
    "typing": {"Self", "Never", "assert_never", "assert_type", "LiteralString", "Required", "Unpack", "override"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "tomllib": {""},
    "itertools": {"batched"},
}
"""What the standard library has since Python 3.11 or 3.12: Ubuntu 22.04 has 3.10."""


def test_nothing_that_python_3_10_lacks_is_imported() -> None:
    """But for the type checker."""
    found = []
    for file in (file for package in MAY_IMPORT for file in files(package)):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom):
                newer = NEWER.get(statement.module or "", set())
                found += [(file, each.name) for each in statement.names if each.name in newer]
            elif isinstance(statement, ast.Import):
                found += [(file, each.name) for each in statement.names if "" in NEWER.get(each.name, ())]
    assert not found
