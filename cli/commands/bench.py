"""gradbed bench: measurements, as ratios within one run."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer.main import get_command_from_info
from typer.models import CommandInfo

from gradbed.cli import layers, options
from gradbed.cli.commands import ListedGroup
from gradbed.cli.commands.run import LAYERS
from gradbed.common.modules import attribute


class BenchGroup(ListedGroup):
    """What measures the switch and the test bed, and what the systems add."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_of_systems()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in _of_systems():
            return own
        info = CommandInfo(name=cmd_name, callback=attribute(_of_systems()[cmd_name]))
        return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode="rich")


def _of_systems() -> dict[str, str]:
    layers.need(LAYERS)
    from gradbed.experiments.systems import find_system, systems

    return {name: place for system in systems() for name, place in find_system(system).benches.items()}


app = typer.Typer(cls=BenchGroup, help="Measure this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def start(
    repetitions: Annotated[int, typer.Option(min=1, help="Starts of each kind; medians are shown.")] = 3,
) -> int:
    """How long k=4 and k=6 fat-trees take to come up, and a whole run of one round."""
    from gradbed.common.namespaces import require_root
    from gradbed.experiments.bench.start import run_bench_start

    require_root("gradbed bench start")
    return run_bench_start(repetitions)


@app.command()
def switch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all take turns; medians are shown.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of one turn.")] = 0.5,
) -> int:
    """The switch beside a forwarder without P4, and BMv2 where GRADBED_BMV2 names it."""
    from gradbed.common.namespaces import require_root
    from gradbed.common.sandbox import run_in_sandbox
    from gradbed.experiments.bench.switch.run import run_bench_switch

    require_root("gradbed bench switch")
    return run_in_sandbox(lambda: run_bench_switch(rounds, seconds))


@app.command()
def models(
    system: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    scale: Annotated[float, typer.Option(help="Links run at so much of their rate, which BMv2 has to carry.")] = 0.02,
) -> int:
    """Every system in Mininet on its own switch and on BMv2: whether it is exact, and how long it takes."""
    from gradbed.common.namespaces import require_root
    from gradbed.experiments.bench.models import run_bench_models

    require_root("gradbed bench models")
    return run_bench_models(system, scale)


@app.command()
def leftovers(
    starts: Annotated[int, typer.Option(min=3, help="Networks that come and go.")] = 100,
) -> int:
    """Networks of two hosts come up and go, some of them killed: nothing of them may be left."""
    from gradbed.experiments.bench.load.leftovers import run_bench_leftovers

    return run_bench_leftovers(starts)


@app.command()
def large(
    k: Annotated[int, typer.Option(min=0, help="Of the fat-tree in Mininet; 0: none.")] = 8,
    virtual_k: Annotated[int, typer.Option(min=0, help="Of the one on the virtual clock; 0: none.")] = 16,
) -> int:
    """Fat-trees of 128 and 1,024 hosts: time to come up, memory, and does everybody reach everybody?"""
    from gradbed.experiments.bench.load.large import run_bench_large

    if k:
        layers.need_debian()
    return run_bench_large(k, virtual_k)


@app.command()
def scale(
    points: Annotated[
        list[str] | None, typer.Argument(help="Names of points (default: all).", show_default=False)
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="Fewer values or samples, and no goals.")] = False,
    threads: options.Threads = 1,
) -> int:
    """Rounds of 64 to 1,024 hosts on the virtual clock: time and processor time of each."""
    from gradbed.experiments.bench.scale import run_bench_scale

    return run_bench_scale(points or [], small, threads)


@app.command()
def live(
    repetitions: Annotated[int, typer.Option(min=1, help="Runs with and without, in turns; medians are shown.")] = 5,
) -> int:
    """What --live costs a run, on the virtual clock, and as root on the real one."""
    from gradbed.experiments.bench.live import run_bench_live

    if os.geteuid() == 0:
        layers.need_debian()
    return run_bench_live(repetitions)


@app.command()
def transport(
    packets: Annotated[int, typer.Option(min=100, help="That each host sends.")] = 10_000,
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each kind; medians are shown.")] = 3,
) -> int:
    """What packets of hosts' queue pairs cost on the virtual clock, at their ends and on each link."""
    from gradbed.experiments.bench.virtual.transport import run_bench_transport

    return run_bench_transport(packets, repetitions)


@app.command()
def virtual(
    sizes: Annotated[str, typer.Option(help="k of the fat-trees, separated by commas.")] = "4,8,16,32",
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each size; medians are shown.")] = 3,
    threads: Annotated[int, typer.Option(min=1, max=64, help="How much sooner are so many done than one?")] = 1,
    delay_us: Annotated[int, typer.Option(min=1, max=1_000_000, help="Of each link.")] = 5,
) -> int:
    """Packet hops per processor second: the virtual clock, ns-3 (libns3-dev), htsim (GRADBED_HTSIM names it)."""
    from gradbed.experiments.bench.measure import sizes_of
    from gradbed.experiments.bench.virtual.run import run_bench_virtual

    return run_bench_virtual([k for (k,) in sizes_of(sizes)], repetitions, threads, delay_us)
