"""What commands install for themselves: layers of Python packages, Debian packages; and commands that load late."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from gradbed.cli import layers
from gradbed.cli.main import GradbedCommands
from gradbed.common import programs
from gradbed.common.errors import MissingPackages, UserError
from gradbed.common.json_lines import own_program
from gradbed.experiments.systems import SYSTEMS, find_system, system_help
from tests.conftest import GradbedHere
from tests.unit.cli.bootstrap.test_bootstrap import write_program

ROOT = Path(__file__).resolve().parents[4]

HEAVY = ("networkx", "numpy", "scipy", "finsy", "grpc", "yaml", "scapy", "matplotlib", "os_ken", "fastapi")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """A checkout whose ./gradbed writes down what it is asked for; what is there besides: nothing at first."""
    found: set[str] = set()

    def version(name: str) -> str:
        asked = (tmp_path / "asked").read_text().split() if (tmp_path / "asked").exists() else []
        names = {each for layer in asked if layer in layers.MEGABYTES for each in layers.requirements(layer)}
        if name in found | names:
            return "1"
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(layers.importlib.metadata, "version", version)
    for layer in layers.MEGABYTES:
        layers.requirements(layer)
    (tmp_path / "requirements").symlink_to(ROOT / "requirements")
    write_program(tmp_path / "gradbed", f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n')
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    return found


def asked(checkout: Path) -> list[str]:
    path = checkout / "asked"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("user", [0, 1000])
def test_root_gets_the_packages_that_are_found_missing_on_the_way_and_the_command_begins_again(
    user: int, installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gradbed_here: GradbedHere
) -> None:
    begun: list[tuple[str, list[str]]] = []

    def lacks(**_: object) -> None:
        raise MissingPackages("no C compiler found", ("gcc", "libc6-dev"))

    def execute(program: str, arguments: list[str]) -> None:
        begun.append((program, arguments))
        raise SystemExit(0)

    monkeypatch.setattr("gradbed.cli.main.app", lacks)
    monkeypatch.setattr(os, "execv", execute)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    ended = gradbed_here("p4", "test", "x.p4", "x.stf")
    if user == 0:
        assert asked(tmp_path) == ["--install-debian gcc libc6-dev"]
        assert begun == [(sys.executable, own_program("gradbed", "p4", "test", "x.p4", "x.stf"))]
    else:
        assert (ended.status, ended.err, asked(tmp_path)) == (2, "gradbed: no C compiler found\n", [])


def test_a_command_installs_its_layers_once_and_goes_on(
    installed: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = layers.needing(lambda value: value + 1, ["p4", "run"], network=False)
    assert command(1) == 2
    assert asked(tmp_path) == ["--install-python p4 run"]
    assert capsys.readouterr().err == "gradbed: installing Python packages (p4, run: up to 280 MB)\n"
    assert command(2) == 3
    assert len(asked(tmp_path)) == 1


def test_only_what_is_missing_is_installed(installed: set[str], tmp_path: Path) -> None:
    installed.update(layers.requirements("p4"))
    layers.need(["p4", "run"])
    assert asked(tmp_path) == ["--install-python run"]


def test_an_installation_that_fails_is_one_line(installed: set[str], tmp_path: Path) -> None:
    write_program(tmp_path / "gradbed", "#!/bin/sh\necho 'gradbed: pip failed: no route' >&2\nexit 2\n")
    with pytest.raises(UserError, match=r"^pip failed: no route$"):
        layers.need(["p4"])


def test_in_an_environment_of_ones_own_nothing_is_installed(
    installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", "/usr")
    with pytest.raises(UserError, match=rf"pip install -e '{tmp_path}\[p4\]'$"):
        layers.need(["p4"])
    assert asked(tmp_path) == []


def test_networks_take_debian_packages(installed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "find_program", lambda program: None if program in ("mnexec", "cc") else program)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    layers.needing(lambda: None, [], network=False)()
    assert asked(tmp_path) == []
    layers.needing(lambda: None, [], network=True)()
    assert asked(tmp_path) == ["--install-debian gcc mininet libc6-dev"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match=r"need root, and Debian packages that are missing \(gcc mininet libc6-dev\)"):
        layers.need_debian()


@pytest.mark.parametrize(
    ("clock", "asks"), [((), False), (("--clock", "real"), True), (("--clock", "virtual"), False)]
)
def test_a_system_takes_them_where_its_clock_with_all_defaults_is_the_real_one(
    clock: tuple[str, ...],
    asks: bool,
    monkeypatch: pytest.MonkeyPatch,
    gradbed_here: GradbedHere,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layers, "find_program", lambda program: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("gradbed.experiments.study.command.run_trials", _begun)
    for system in ("ndn", "shuffle", "compression", "interconnect", "training"):
        ended = gradbed_here("run", system, *clock)
        assert ended.status == 2
        assert ("Debian packages that are missing" in ended.err) == asks, ended.err
        assert ("the run begins" in ended.err) != asks, ended.err


def _begun(*arguments: object) -> None:
    raise UserError("the run begins")


def test_programs_of_the_administrator_are_found_by_every_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user's PATH on Debian is without /usr/sbin, where ethtool and ip are."""
    write_program(tmp_path / "ethtool", "#!/bin/sh\n")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", (str(tmp_path),))
    monkeypatch.setenv("PATH", "/nowhere")
    assert programs.find_program("ethtool") == str(tmp_path / "ethtool")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    assert programs.find_program("ethtool") is None
    monkeypatch.undo()
    assert {"/usr/sbin", "/sbin"} <= set(programs.search_path().split(os.pathsep))


def test_every_layer_that_a_command_names_exists() -> None:
    for name, entry in GradbedCommands.entries.items():
        for layer in (*entry.layers, *(each for some in entry.of.values() for each in some)):
            assert layers.requirements(layer), f"{name} needs {layer}"
    assert {path.stem for path in (ROOT / "requirements").glob("*.txt")} == {"base", *layers.MEGABYTES}


def test_modules_lead_to_their_layers() -> None:
    assert layers.layer_of("networkx.algorithms") == "options"
    assert layers.layer_of("scipy") == "study"
    assert layers.layer_of("no_such_module") is None


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["rnu"]])
def test_the_command_line_loads_nothing_but_the_base(arguments: list[str]) -> None:
    """Everything that is not the base's is hidden, as if it were not installed."""
    program = f"""
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in {HEAVY!r}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Hidden())
sys.argv = ["gradbed", *{arguments!r}]
from gradbed.cli.main import main
main()
"""
    outcome = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in outcome.stderr, outcome.stderr
    assert outcome.returncode == (2 if arguments == ["rnu"] else 0)


def completions(*words: str) -> list[str]:
    environment = {
        **os.environ,
        "_GRADBED_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["gradbed", *words]),
        "COMP_CWORD": str(len(words)),
    }
    return subprocess.run(
        [sys.executable, "-m", "gradbed"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    ).stdout.split()


def test_completion_by_the_tab_key() -> None:
    assert completions("ca") == ["calibrate"]
    assert completions("p4", "comp") == ["compile"]
    assert "--topology" in completions("run", "aggregation", "--to")


def test_alone_it_says_where_to_begin() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "gradbed"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    for words in ("./gradbed demo", "p4 compile", "--help", "--install-completion"):
        assert words in outcome.stdout


def test_what_an_option_needs_is_installed_and_the_command_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some placements solve linear programs: SciPy is missed when the command runs already."""
    from gradbed.cli import main

    done: list[object] = []

    def misses_scipy(**_options: object) -> None:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy.optimize")

    def start_again(program: str, command: list[str]) -> None:
        done.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(main, "app", misses_scipy)
    monkeypatch.setattr(layers, "is_installed", lambda layer: False)
    monkeypatch.setattr(layers, "need", done.append)
    monkeypatch.setattr(os, "execv", start_again)
    monkeypatch.setattr(sys, "argv", ["gradbed", "run", "aggregation", "--placement", "lp"])
    with pytest.raises(SystemExit):
        main.main()
    assert done == [["study"], own_program("gradbed", "run", "aggregation", "--placement", "lp")]
    monkeypatch.setattr(layers, "is_installed", lambda layer: True)
    with pytest.raises(ModuleNotFoundError):
        main.main()


LISTS_SYSTEMS = """
import sys
from gradbed.cli.main import main
sys.argv = ["gradbed", "run", "--help"]
try:
    main()
finally:
    print("LOADED", *sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_the_list_of_systems_loads_none_of_them() -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", LISTS_SYSTEMS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    shown, _, loaded = outcome.stdout.partition("LOADED")
    for name in (
        name for name, place in SYSTEMS.items() if place.startswith("gradbed.experiments.")
    ):  # tests add theirs
        said = system_help(name)
        assert said == inspect.cleandoc(find_system(name).__doc__ or "")
        assert f"{name} " in shown and said.split()[0] in shown
    assert not {"numpy", "scipy", "networkx", "hosts"} & set(loaded.split()), loaded
