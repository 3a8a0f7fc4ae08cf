"""Link models for Linux interfaces: HTB for the rate, netem for delay, loss and duplication, pfifo for the queue.

Each command acts on what an interface sends, so both ends of a link need theirs. Not exact where the model of
switch.link is: netem holds a delayed packet before HTB, and its random numbers have no seed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from functools import partial

from common import kernel
from common.capabilities import GRADBED_SWITCHES
from common.errors import UserError
from common.namespaces import in_network_namespace
from topo.link import LinkModel

FRAME_BYTES = 1514
"""The largest frame without FCS at an MTU of 1500."""


def commands(interface: str, model: LinkModel) -> list[str]:
    """Lines for `tc -batch` that give an interface the model; none for a link without limits."""
    lines = []
    parent = "root"
    if model.rate_bps is not None:
        lines += [
            f"qdisc add dev {interface} root handle 1: htb default 1",
            f"class add dev {interface} parent 1: classid 1:1 htb rate {model.rate_bps}bit quantum {FRAME_BYTES}",
        ]
        parent = "parent 1:1"
    if _needs_netem(model):
        words = [f"qdisc add dev {interface} {parent} handle 10: netem limit {_netem_limit(model)}"]
        if model.delay_us:
            words.append(f"delay {model.delay_us}us" + (f" {model.jitter_us}us" if model.jitter_us else ""))
        if model.loss:
            words.append(f"loss {100 * model.loss:g}%")
        if model.duplicate:
            words.append(f"duplicate {100 * model.duplicate:g}%")
        lines.append(" ".join(words))
    elif model.rate_bps is not None:
        lines.append(f"qdisc add dev {interface} {parent} handle 10: pfifo limit {model.queue_packets}")
    return lines


def require_kernel_support(models: Iterable[LinkModel]) -> None:
    """UserError if the kernel lacks what the models ask of Linux interfaces. Needs root."""
    wanted = tuple(models)
    if any(model.channels > 1 for model in wanted):
        raise UserError("BMv2's ports are one channel: drop `--switch bmv2`, or take links of one channel")
    GRADBED_SWITCHES.require(not any(model.bit_error_rate for model in wanted), "a bit error rate")
    if any(model.rate_bps is not None for model in wanted) and not kernel.has_htb():
        raise UserError(
            "this kernel has no HTB, so BMv2's links cannot have a rate: drop `--switch bmv2` or the rate"
        )
    if any(model.jitter_us and not model.reorder for model in wanted):
        raise UserError("netem's jitter reorders packets: drop `--switch bmv2`, or the jitter, or let links reorder")
    if any(map(_needs_netem, wanted)) and not kernel.has_netem():
        raise UserError(
            "this kernel has no netem, so BMv2's links cannot have delay, loss or duplication: "
            "drop `--switch bmv2` or make links without them"
        )


def apply(lines: Sequence[str], pid: int | None = None) -> None:
    """Run tc on the lines, in the network namespace of a process if given. RuntimeError with tc's words."""
    if not lines:
        return
    run = partial(
        subprocess.run,
        ["tc", "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = run() if pid is None else in_network_namespace(pid, run)
    if outcome.returncode != 0:
        raise RuntimeError(f"tc refused a link model: {outcome.stderr.strip()}")


def _needs_netem(model: LinkModel) -> bool:
    return bool(model.delay_us or model.loss or model.duplicate)


def _netem_limit(model: LinkModel) -> int:
    """The queue and what is in flight: netem counts both. Without a rate the flight has no bound, so be generous."""
    if model.rate_bps is None:
        return max(model.queue_packets, 10_000)
    in_flight_bits = model.rate_bps * model.delay_us // 1_000_000
    return model.queue_packets + -(-in_flight_bits // (8 * FRAME_BYTES))
