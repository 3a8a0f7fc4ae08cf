"""Packaging. Tool settings are in pyproject.toml, what commands need in requirements/.

The package is called gradbed. Its folders stand at the top of the checkout: api/ is `gradbed` itself, topo/ is
`gradbed.topo`, and so on.
"""

import runpy
from pathlib import Path

from setuptools import find_namespace_packages, setup

HERE = Path(__file__).resolve().parent
FOLDERS = [*runpy.run_path(str(HERE / "common" / "modules.py"))["FOLDERS"], "p4src", "requirements"]


def requirements(layer: str) -> list[str]:
    """Return what a layer needs, with the layers that it builds on."""
    found: list[str] = []
    for line in (HERE / "requirements" / f"{layer}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r ").removesuffix(".txt"))
        elif line and not line.startswith("#"):
            found.append(line)
    return list(dict.fromkeys(found))


inside = find_namespace_packages(include=[f"{name}*" for name in FOLDERS], exclude=["*__pycache__*"])
setup(
    name="gradbed",
    version=runpy.run_path(str(HERE / "common" / "version.py"))["VERSION"],
    description="Packet-level runtime for the networks of distributed machine learning",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=["gradbed", *(f"gradbed.{name}" for name in inside if name.split(".")[0] in FOLDERS)],
    package_dir={"gradbed": "api", **{f"gradbed.{name}": name for name in FOLDERS}},
    include_package_data=True,  # all that MANIFEST.in names
    install_requires=[*requirements("base"), *requirements("api")],
    extras_require={file.stem: requirements(file.stem) for file in sorted((HERE / "requirements").glob("*.txt"))},
    entry_points={"console_scripts": ["gradbed = gradbed.__main__:start"]},
)
