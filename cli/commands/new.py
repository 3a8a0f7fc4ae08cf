"""gradbed new: a folder with a P4 program of one's own, and all that it takes to run it; or what a system makes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from gradbed.cli import layers
from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND, attribute, with_commands
from gradbed.experiments.systems import makers

TEMPLATES = Path(__file__).resolve().parents[1] / "templates" / "program"
SOURCE = "program.p4"
"""Of the templates; in all of them FOLDER and NAME are filled in."""

PROGRAM = "program"
LAYERS = ("run",)
"""Of cli/layers.py, which what systems make takes."""


class ProgramOrMade(TyperGroup):
    """A group in which `new NAME` is `new program NAME`; what systems make are commands, each made on demand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `program` where the first argument is no command."""
        if not args or (not args[0].startswith("-") and args[0] not in self.list_commands(ctx)):
            args = [PROGRAM, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return `program` and what systems make."""
        return [PROGRAM, *makers()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; of what a system makes, a stand-in with its name and help, for lists."""
        if cmd_name in makers():
            return TyperCommand(cmd_name, help=f"Make a {cmd_name}.", callback=lambda: None)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and make that of a system."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in makers():
            layers.need(LAYERS)
            command = maker_command(str(name))
        return name, command, rest


app = typer.Typer(
    cls=ProgramOrMade,
    help="Make a folder with a P4 program of your own that runs (gradbed new NAME), or what a command below makes.",
)


@app.callback()
def commands() -> None:
    """Make a folder with a P4 program of your own that runs: gradbed new NAME. Or what a system makes."""


def maker_command(name: str) -> Any:
    """Make the command `gradbed new NAME FOLDER`, whose options are the fields of a model."""
    from gradbed.cli.options import parameters, with_parameters
    from gradbed.experiments.configuration.options import complaint, model_options, nested

    model: type[BaseModel] = attribute(makers()[name])
    known = model_options(model, {})

    def make(
        *,
        folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
        **given: Any,
    ) -> int:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is there already: choose another folder")
        try:
            made = model.model_validate(nested(known, given, {}))
        except ValidationError as error:
            raise complaint(error, known) from None
        print(f"made {made.make(folder)}")  # type: ignore[attr-defined]
        return 0

    make.__doc__ = model.__doc__
    info = CommandInfo(name=name, callback=with_parameters(make, parameters(known)))
    return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode="rich")


@app.command(PROGRAM)
def new(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to make; its last part is the name.")],
) -> int:
    """Make a folder with a P4 program, entries for its tables, a study and tests. All of it runs."""
    name = folder.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise UserError(f"{name!r} is no name for a program: use letters, digits and underscores, a letter first")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{folder} is there already: choose another name") from None
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror}") from None
    for template in sorted(TEMPLATES.iterdir()):
        target = folder / (f"{name}.p4" if template.name == SOURCE else template.name)
        text = with_commands(template.read_text(encoding="utf-8"), folder).replace("NAME", name)
        target.write_text(text, encoding="utf-8")
    print(f"made {folder}/: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(f"now: {COMMAND} run workload {folder}/{name}.p4")
    return 0
