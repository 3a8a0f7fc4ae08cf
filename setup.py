"""Packaging. Tool settings are in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    name="gradbed",
    version="0.1.0",
    description="Packet-level testbed for the networks of distributed machine learning",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["cli*", "experiments*", "controller*", "hosts*", "topo*", "switch*"]),
    package_data={
        "experiments": ["systems/*/studies/*.yaml", "bench/switch/*.c", "bench/switch/programs/*.p4"],
        "switch": ["runtime/*.c", "runtime/*.h", "compiler/p4include/*.p4"],
    },
    install_requires=[
        "fastapi>=0.100",
        "fastapi-offline>=1.7",
        "fastparquet>=2024.2",
        "finsy>=0.30,<0.31",
        "matplotlib>=3.7",
        "networkx>=3.0",
        "numpy>=1.24",
        "os-ken>=4.2,<5",
        "packaging",  # for the Mininet of newer distributions
        "pydantic>=2.6",
        "pyroute2>=0.7",
        "PyYAML>=6.0",
        "rich>=13",
        "scapy>=2.5",
        "scikit-learn>=1.3,<2",
        "scipy>=1.15",
        "setuptools; python_version >= '3.12'",
        "threadpoolctl>=3",
        "typer>=0.29",
        "uvicorn>=0.23",
    ],
    extras_require={
        "torch": ["torch>=2.1"],
        "test": ["httpx>=0.25", "hypothesis>=6", "mypy>=1.8", "pytest>=7", "ruff>=0.5"],
    },
    entry_points={"console_scripts": ["gradbed = cli.__main__:start"]},
)
