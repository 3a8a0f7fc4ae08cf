"""gradbed run STUDY.yaml: an experiment from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import layers, options

STUDY_SUFFIXES = (".yaml", ".yml")


class StudyOrCommand(TyperGroup):
    """`run FILE.yaml` is `run study FILE.yaml`, wherever the file stands among the options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and any(word.endswith(STUDY_SUFFIXES) for word in args):
            args = ["study", *args]
        return super().parse_args(ctx, args)


def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="The experiment (docs/experiments.md).")],
    quick: Annotated[bool, typer.Option("--quick", help="The small version: the file's quick section.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest run of this study.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    scale: options.Scale = None,
) -> int:
    """Run an experiment from its file: gradbed run STUDY.yaml."""
    from experiments.study.command import run_study_file
    from experiments.study.loading import load_study

    if load_study(file, quick).system.needs_network:
        layers.need_debian()
    return run_study_file(file, quick=quick, resume=resume, output=output, factor=scale)
