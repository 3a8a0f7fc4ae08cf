"""gradbed run: a study from its file, or one trial of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperOption
from typer.main import get_command_from_info
from typer.models import CommandInfo

from gradbed.cli import layers, options
from gradbed.cli.commands import ListedGroup
from gradbed.cli.options import HELP_ALL, every_option, meant, parameters, with_parameters
from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import (
    RUN_AND_OUTPUT,
    ModelOption,
    complaint,
    model_options,
    nested,
)
from gradbed.experiments.systems import find_system, system_help, systems

LAYERS = ("run", "study")
"""Of cli/layers.py, which one trial takes."""

ADVANCED = ("scale", "live_paused", "threads")
"""Options that all systems have and that only `--help-all` lists."""

STUDY_SUFFIXES = (".yaml", ".yml")

TORCH = """Train your own PyTorch model over the network, one script in every host: its gradients are summed in the
switches, or, with an option about compression, compressed on their way to a server."""


class StudyOrSystem(ListedGroup):
    """A group in which `run FILE.yaml` is `run study FILE.yaml`, wherever the file stands among the options.

    The systems are commands, each made on demand.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `study` where an argument is a file of a study."""
        if args and args[0] not in self.list_commands(ctx) and any(word.endswith(STUDY_SUFFIXES) for word in args):
            args = ["study", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return `study`, `torch` and the systems."""
        return [*super().list_commands(ctx), "torch", *systems()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; of a system, a stand-in with its name and help, for lists."""
        if cmd_name == "torch" or cmd_name in systems():
            help = TORCH if cmd_name == "torch" else system_help(cmd_name)
            return TyperCommand(cmd_name, help=help, callback=lambda: None)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command, and make that of a system."""
        name, command, rest = super().resolve_command(ctx, args)
        if name == "torch" or name in systems():
            # Even their options are made of what is not installed yet.
            layers.need(LAYERS)
            command = torch_command() if name == "torch" else system_command(name)
        return name, command, rest


app = typer.Typer(cls=StudyOrSystem, help="Run an experiment.", no_args_is_help=True)


@app.callback()
def run() -> None:
    """Run an experiment: one trial of a system, or a study from its file."""


@app.command()
def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="The experiment (docs/experiments.md).")],
    quick: Annotated[bool, typer.Option("--quick", help="The small version: the file's quick section.")] = False,
    clock: options.Clock = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the newest run of this study.")] = False,
    jobs: options.Jobs = None,
    scheduler: options.Scheduler = None,
    output: options.Output = Path("results"),
    scale: options.Scale = None,
    pcap: options.Pcap = None,
    live: options.Live = False,
    live_paused: options.LivePaused = False,
) -> int:
    """Run an experiment from its file: gradbed run STUDY.yaml."""
    from gradbed.experiments.study.command import run_study_file
    from gradbed.experiments.study.running.executors import RunOptions

    with options.observed(live, live_paused, scheduler) as observer:
        of_run = RunOptions(
            output,
            resume,
            scale,
            jobs,
            scheduler,
            options.captured(pcap),
            observer,
            prepare_network=layers.need_debian,
        )
        return run_study_file(file, of_run, quick=quick, clock=clock)


def system_command(name: str) -> Any:
    """Make the command `gradbed run NAME`, whose options are the fields of the system's configuration."""
    system = find_system(name)
    run = single_run(name, system.options.defaults)
    fields = [
        *model_options(system.configuration, system.options.defaults),
        *model_options(system.options.shorthands, {}),
    ]
    return _command(name, with_parameters(run, parameters(fields)))


def torch_command() -> Any:
    """Make the command `gradbed run torch SCRIPT`, with the options of all systems whose workers run scripts."""
    from gradbed.hosts.torch_hook.torch_extra import install_torch

    runners = {
        name: system for name in systems() if (system := find_system(name)).options.script_defaults is not None
    }
    options_of = {
        name: [
            each
            for each in model_options(system.configuration, system.options.script_defaults or {})
            if each.path not in (("workload", "path"), ("workload", "kind"), ("clock",))
        ]
        for name, system in runners.items()
    }

    def torch(
        *,
        script: Annotated[
            Path, typer.Argument(help="A script with DistributedDataParallel and torch_hook.register.")
        ],
        arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments, after --.")] = None,
        install: Annotated[
            bool, typer.Option("--install", help="Install PyTorch first, without CUDA, if it is not there.")
        ] = False,
        trace: Annotated[
            Path | None,
            typer.Option(help="Record a trace of the script into this folder, on this machine without a network."),
        ] = None,
        seed: options.Seed = 1,
        output: options.Output = Path("results"),
        scale: options.Scale = None,
        pcap: options.Pcap = None,
        live: options.Live = False,
        **given: Any,
    ) -> int:
        if install:
            install_torch()
        if trace is not None:
            return record_torch(script, arguments or [], trace, every_option(options_of), given)
        name, values = meant(options_of, given)
        run = single_run(name, runners[name].options.script_defaults or {})
        of_script = {"workload__path": str(script), "workload__arguments": tuple(arguments or ())}
        return run(seed=seed, output=output, scale=scale, pcap=pcap, live=live, **of_script, **values)

    torch.__doc__ = TORCH
    return _command("torch", with_parameters(torch, parameters(every_option(options_of))))


def record_torch(
    script: Path, arguments: list[str], folder: Path, known: list[ModelOption], given: Mapping[str, Any]
) -> int:
    """Run `gradbed run torch --trace FOLDER`; of all options only --workers may be given with it."""
    from gradbed.experiments.torch_scripts import run_torch_recording

    flags = {option.flag: given[option.parameter] for option in known if given.get(option.parameter) is not None}
    ranks = flags.pop("--workers", None)
    if flags:
        raise UserError(f"{next(iter(flags))} does not go with --trace, which records without a network")
    if ranks is None:
        ranks = next(option.default for option in known if option.flag == "--workers")
    return run_torch_recording(script, arguments, ranks, folder)


def _command(name: str, callback: Callable[..., int]) -> Any:
    info = CommandInfo(name=name, callback=layers.needing(callback, LAYERS, network=False))
    command = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode="rich")
    for parameter in command.params:
        if isinstance(parameter, TyperOption) and parameter.name not in (HELP_ALL, "help"):
            parameter.rich_help_panel = parameter.rich_help_panel or RUN_AND_OUTPUT
            parameter.hidden = parameter.hidden or parameter.name in ADVANCED
            if parameter.show_default and parameter.default is not None and not parameter.is_flag:
                parameter.help = f"{(parameter.help or '').removesuffix('.')} (default: {parameter.default})."
                parameter.show_default = False
    return command


def single_run(name: str, defaults: Mapping[str, Any]) -> Callable[..., int]:
    """Run one trial of a system with the values of its options, which override `defaults` (by dotted path)."""

    def run_trial(
        *,
        seed: options.Seed = 1,
        output: options.Output = Path("results"),
        scale: options.Scale = None,
        pcap: options.Pcap = None,
        live: options.Live = False,
        live_paused: options.LivePaused = False,
        threads: options.Threads = 1,
        **given: Any,
    ) -> int:
        from gradbed.experiments.study.command import run_system
        from gradbed.experiments.study.loading import suited_to_bmv2
        from gradbed.experiments.study.running.executors import RunOptions

        system = find_system(name)
        made, short = model_options(system.configuration, defaults), model_options(system.options.shorthands, {})
        names = {each.parameter for each in short}
        try:
            script = defaults.get("workload.kind") == "script"
            values = nested(made, {key: value for key, value in given.items() if key not in names}, defaults)
            chosen = nested(short, {key: value for key, value in given.items() if key in names}, {})
            axes = system.options.shorthands.model_validate(chosen).axes(values)
            if "bmv2" in (values.get("program", {}).get("model"), *axes.get("program.model", ())):
                by_hand = {key for key, value in given.items() if value is not None}
                values = suited_to_bmv2(system, values, by_hand)
            with options.observed(live, live_paused) as observer:
                of_run = RunOptions(
                    output,
                    factor=scale,
                    pcap=options.captured(pcap),
                    observer=observer,
                    threads=threads,
                    prepare_network=layers.need_debian,
                )
                return run_system(name, values, seed, of_run, script, axes)
        except ValidationError as error:
            raise complaint(error, [*made, *short]) from None

    run_trial.__doc__ = find_system(name).__doc__
    return run_trial
