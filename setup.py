"""Packaging. Tool settings are in pyproject.toml, what commands need in requirements/."""

import runpy
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent


def requirements(layer: str) -> list[str]:
    """What a layer needs, with the layers that it builds on."""
    found: list[str] = []
    for line in (HERE / "requirements" / f"{layer}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r ").removesuffix(".txt"))
        elif line and not line.startswith("#"):
            found.append(line)
    return found


setup(
    name="gradbed",
    version=runpy.run_path(str(HERE / "common" / "version.py"))["VERSION"],
    description="Packet-level testbed for the networks of distributed machine learning",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(
        include=[
            f"{name}*"
            for name in (
                "cli",
                "experiments",
                "controller",
                "hosts",
                "emulation",
                "switch",
                "formats",
                "topo",
                "common",
            )
        ]
    ),
    package_data={
        "cli": ["templates/*/*", "templates/*/*/*", "templates/*/*/*/*"],
        "experiments": [
            "systems/*/studies/*.yaml",
            "bench/switch/*.c",
            "bench/switch/programs/*.p4",
            "bench/virtual/*.cc",
        ],
        "hosts": ["learning/*.csv.gz"],
        "switch": ["runtime/*.[ch]", "runtime/*/*.[ch]", "compiler/p4include/*.p4"],
    },
    install_requires=requirements("base"),
    extras_require={file.stem: requirements(file.stem) for file in sorted((HERE / "requirements").glob("*.txt"))},
    entry_points={"console_scripts": ["gradbed = cli.__main__:start"]},
)
