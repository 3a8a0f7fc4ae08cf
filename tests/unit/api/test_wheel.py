"""What pip installs: one package, which works from any folder, whatever modules lie there."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from gradbed.common.modules import FOLDERS
from tests.tiny import FOLDER as TINY

ROOT = Path(__file__).resolve().parents[3]
PURELIB = Path(sysconfig.get_paths()["purelib"])


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Built once, by the first of the processes that share the tests."""
    shared = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        shared = shared.parent
    with (shared / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = shared / "wheel"
        if not place.exists():
            _build(place)
    (found,) = place.glob("gradbed-*.whl")
    return found


def _build(place: Path) -> None:
    """Put the wheel into a new folder, all or nothing."""
    scratch = place.with_suffix(".part")
    # The build writes beside setup.py: not into this checkout.
    sources = scratch / "sources"
    sources.mkdir(parents=True)
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name not in ("tests", "docs", "results", "build"):
            (sources / path.name).symlink_to(path)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(scratch), str(sources)], check=True, timeout=300)
    scratch.rename(place)


class Installed:
    """An environment with the wheel and, of others, all that this one has; and a user's folder, with modules whose
    names are those of the package's folders."""

    def __init__(self, wheel: Path, place: Path) -> None:
        venv = place / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=60)
        self.site = venv / PURELIB.relative_to(sys.prefix)
        (self.site / "others.pth").write_text(f"{PURELIB}\n")
        self.python, self.gradbed = venv / "bin" / "python", venv / "bin" / "gradbed"
        self.install(wheel)
        self.folder = place / "folder"
        self.folder.mkdir()
        for name in FOLDERS:
            (self.folder / f"{name}.py").write_text(f"raise RuntimeError('the user\\'s {name}.py was loaded')\n")

    def install(self, package: Path) -> None:
        """Let pip install a wheel or a folder."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        options = ["--no-deps", "--no-index", "--no-compile", "--no-build-isolation"]
        subprocess.run([*pip, *options, str(package)], check=True, timeout=300)

    def run(self, *command: object) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("installed"))


@pytest.mark.thorough
def test_the_wheel_has_one_package_with_all_files_of_its_folders(wheel: Path) -> None:
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.parts[0].split("-")[0] for name in names} == {"gradbed"}
    there = {Path(*name.parts[1:]) for name in names if name.parts[0] == "gradbed"}
    command = ["git", "-C", str(ROOT), "ls-files", "api", *FOLDERS, "p4src", "requirements"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    wanted = {Path(name.removeprefix("api/")) for name in listed if (ROOT / name).exists()}
    assert wanted == there
    assert {Path("p4src/aggregation.p4"), Path("cli/templates/program/program.p4")} <= there
    assert not [
        name for name in there if {"tools", "tests", "bench", "corpus", "suites", "recordings"} & {*name.parts}
    ]


def test_it_brings_the_command_line_and_all_that_the_api_takes(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    needed = " ".join(line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line)
    for name in ("pydantic", "rich", "typer", "numpy", "networkx", "scapy", "finsy", "scipy", "pandas"):
        assert re.search(rf"Requires-Dist: {name}[<>]", needed), name


LOADS_EVERYTHING = """
import importlib, pkgutil, sys
import gradbed
for module in pkgutil.walk_packages(gradbed.__path__, "gradbed."):
    if not module.name.endswith("__main__") and "templates" not in module.name:  # those are for students
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.nightly
def test_no_module_of_it_is_loaded_by_another_name(installed: Installed) -> None:
    loaded = installed.run(installed.python, "-c", LOADS_EVERYTHING)
    assert loaded.returncode == 0, loaded.stderr
    assert not set(FOLDERS) & set(loaded.stdout.split())


@pytest.mark.thorough
def test_a_program_of_ones_own_from_any_folder(installed: Installed) -> None:
    made = installed.run(installed.gradbed, "new", "mine")
    assert made.stdout.splitlines()[-1] == "now: gradbed run workload mine/mine.p4"
    compiled = installed.run(installed.gradbed, "p4", "compile", "mine/mine.p4", "-o", "mine.json")
    assert (compiled.returncode, compiled.stderr) == (0, "")
    assert (installed.folder / "mine.json").exists()
    ran = installed.run(installed.gradbed, "run", "workload", "mine/mine.p4", "--clock", "virtual")
    assert ran.returncode == 0, ran.stderr
    assert list(installed.folder.glob("results/workload/*/trials.csv"))


@pytest.mark.nightly
@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.root)])
def test_the_demo(installed: Installed, clock: str) -> None:
    ran = installed.run(installed.gradbed, "demo", "--clock", clock)
    assert ran.returncode == 0, ran.stderr
    assert "Results are bit-identical to single-process training" in ran.stdout


TORCH_HOOK = "from gradbed import torch_hook; print(torch_hook.available(), torch_hook.register.__name__)"


@pytest.mark.thorough
def test_plugins_of_other_packages(installed: Installed, tmp_path: Path) -> None:
    """A system, a topology and a compressor that pip has put beside it, and the hook that docs/torch.md names."""
    # The build writes beside pyproject.toml: not into this checkout.
    sources = shutil.copytree(TINY, tmp_path / "sources")
    installed.install(sources)
    for words in (
        ["aggregation", "--rounds", "2"],
        ["tiny", "--topology", "circle:4", "--packets", "20"],
        ["compression", "--topology", "circle:5", "--compress", "every:3", "--workers", "4", "--ratio", "none"],
    ):
        ran = installed.run(installed.gradbed, "run", *words, "--clock", "virtual")
        assert ran.returncode == 0, ran.stderr
        assert list(installed.folder.glob(f"results/{words[0]}/*/trials.csv"))
    hook = installed.run(installed.python, "-c", TORCH_HOOK)
    assert (hook.returncode, hook.stdout) == (0, "False register\n"), hook.stderr


def test_what_needs_a_checkout_says_so(installed: Installed) -> None:
    ended = installed.run(installed.gradbed, "test")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "gradbed: gradbed test needs a checkout: git clone the project, then ./gradbed test there\n"
    )


def test_words_are_those_of_an_installed_command(installed: Installed) -> None:
    assert "./gradbed" not in installed.run(installed.gradbed).stdout
    assert installed.run(installed.python, "-m", "gradbed", "--version").stdout == "gradbed 0.1.0\n"
