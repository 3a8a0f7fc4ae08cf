"""The commands link, load, plan, counters, restart and wait.

They show and change links, and show what switches should hold and what they count.
"""

from __future__ import annotations

import time
from typing import Any

from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import in_words
from gradbed.controller.planning.text import switch_text
from gradbed.experiments.configuration.sections import LinkOverride
from gradbed.experiments.prompt.base import BasePrompt, starting
from gradbed.experiments.scale import Scale
from gradbed.topo.link import LinkModel

# ---- Links ----


ATTRIBUTES = {
    field.removeprefix("pfc_").partition("_")[0]: field for field in LinkOverride.model_fields if field != "reorder"
}
"""Words of `link` with the fields that they set; reordering stays as the network was made."""

BAR_WIDTH = 30
MOST_LOAD_S = 3600.0


class LinkCommands(BasePrompt):
    """Commands for links between switches and to hosts."""

    def do_link(self, line: str) -> None:
        """Show a link, cut and mend it, or change what it does to packets.
        Usage: link A B                      what it is now
               link A B down|up              routes and jobs are planned anew
               link A B ATTRIBUTE VALUE ...  in both directions, from now on
        Attributes: rate (Mbit/s), delay and jitter (us), loss and duplicate (probabilities), queue (packets).
        Example: link e1 a1 rate 10 loss 0.01"""
        words = self.words(line, 2 + 2 * len(ATTRIBUTES))
        if len(words) < 2:
            raise UserError("which link? link A B, by the names of its two nodes")
        a, b, *rest = words
        a, b = self.topology.node_name(a), self.topology.node_name(b)
        self.topology.link(a, b)
        if len(rest) == 1 and rest[0] in ("up", "down"):
            self.runtime.set_link_up(a, b, rest[0] == "up")
        elif rest:
            self.runtime.backend.change_link(a, b, **_changes(rest))
        self._show_link(a, b)

    def complete_link(self, text: str, line: str, begin: int, end: int) -> list[str]:
        before = line[:begin].split()[1:]
        if not before:
            return starting(text, list(self.mn))
        if len(before) == 1:
            return starting(text, list(self.topology.graph.adj.get(before[0], ())))
        if len(before) % 2:
            return []  # a value
        return starting(text, [*(["up", "down"] if len(before) == 2 else []), *ATTRIBUTES])

    def _show_link(self, a: str, b: str) -> None:
        down = {frozenset((row["a"], row["b"])) for row in self.runtime.client.links() if not row["up"]}
        state = "down" if frozenset((a, b)) in down else "up"
        self.say(f"{a}-{b}: {state}, {_model_text(self.runtime.backend.link_model(a, b))}")

    def do_load(self, line: str) -> None:
        """Show what every link carries, measured over a second or the seconds given, the busiest first.
        Usage: load [SECONDS]
        Bars are parts of the link's rate; of links without a rate, parts of the busiest link's load."""
        words = self.words(line, 1)
        try:
            seconds = float(words[0]) if words else 1.0
        except ValueError:
            raise UserError(f"seconds are a number, not {words[0]!r}") from None
        if not 0 < seconds <= MOST_LOAD_S:
            raise UserError(f"seconds are above 0 and at most {MOST_LOAD_S:.0f}")
        started_s = time.monotonic()
        before = {(row.from_node, row.to_node): row for row in self.runtime.backend.link_statistics()}
        time.sleep(seconds)
        after = self.runtime.backend.link_statistics()
        passed_s = time.monotonic() - started_s
        loads = []
        for row in after:
            earlier = before[row.from_node, row.to_node]
            load_bps = 8 * (row.bytes - earlier.bytes) / passed_s
            dropped = row.queue_drops + row.losses - earlier.queue_drops - earlier.losses
            if load_bps or dropped:
                loads.append((load_bps, dropped, row.from_node, row.to_node))
        if not loads:
            self.say(f"no link carried anything in {passed_s:.1f} s")
        busiest_bps = max((load_bps for load_bps, *_ in loads), default=0.0)
        for load_bps, dropped, sender, receiver in sorted(loads, key=lambda load: (-load[0], *load[2:])):
            rate_bps = self.runtime.backend.link_model(sender, receiver).rate_bps
            text = f"{bar(load_bps / (rate_bps or busiest_bps or 1))} {load_bps / 1e6:9.3f} Mbit/s"
            if rate_bps:
                text += f" {100 * load_bps / rate_bps:5.1f} %"
            if dropped:
                text += f", {dropped} packets lost"
            self.say(f"{sender:>6} -> {receiver:<6} {text}")


def bar(part: float) -> str:
    """Return a bar of BAR_WIDTH characters; any fraction above 0 shows."""
    filled = min(BAR_WIDTH, max(round(BAR_WIDTH * part), 1 if part > 0 else 0))
    return "#" * filled + "." * (BAR_WIDTH - filled)


def _changes(words: list[str]) -> dict[str, Any]:
    """Return ATTRIBUTE VALUE ... as fields of gradbed.topo.link.LinkModel.

    Raises:
        UserError: an attribute or value is not possible.
    """
    if len(words) % 2:
        raise UserError(f"{words[-1]!r} is neither up nor down, and an attribute needs a value; see help link")
    given = dict(zip(words[::2], words[1::2], strict=True))
    for word in given:
        if word not in ATTRIBUTES:
            raise UserError(f"a link has no {word!r}; it has: {', '.join(ATTRIBUTES)}")
    fields = {ATTRIBUTES[word]: value for word, value in given.items()}
    try:
        return LinkOverride.model_validate(fields).fields(Scale())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        names = [word for word, field in ATTRIBUTES.items() if first["loc"][:1] == (field,)]
        about = f", got {first['input']!r}" if names else ""
        raise UserError(": ".join([*names, in_words(first)]) + about) from None


def _model_text(model: LinkModel) -> str:
    """Describe a link, without properties that it does not have."""
    rate = "no limit of rate" if model.rate_bps is None else f"{model.rate_bps / 1e6:g} Mbit/s"
    parts = [rate, f"delay {model.delay_us} us", f"queue {model.queue_packets} packets"]
    parts += [f"{name} {value:g}" for name in ("loss", "duplicate") if (value := getattr(model, name))]
    parts += [f"jitter {model.jitter_us} us"] if model.jitter_us else []
    parts += [f"PFC {model.pfc_xoff_bytes} to {model.pfc_xon_bytes} bytes"] if model.pfc_xoff_bytes else []
    return ", ".join(parts)


# ---- Switches ----


RETURN_TIMEOUT_S = 20.0
RETRY_S = 0.05


class SwitchCommands(BasePrompt):
    """Commands that ask the controller, for switches of every kind."""

    complete_plan = complete_counters = complete_restart = BasePrompt.complete_switches

    def do_plan(self, line: str) -> None:
        """Show what the switches should hold now: table entries, multicast groups, registers, flows.
        Usage: plan [SWITCH ...]"""
        names = self.switches(line)
        plan = self.runtime.client.plan()
        for name in names:
            self.say(switch_text(name, plan[name]))

    def do_counters(self, line: str) -> None:
        """Show the counters of the switches, those of their cells that are not zero.
        Usage: counters [SWITCH ...]"""
        for name in self.switches(line):
            counted = {counter: cells for counter, cells in self.runtime.counters(name).items() if cells}
            self.say(f"{name}: {len(counted)} of its counters are not zero")
            for counter, cells in counted.items():
                self.say(f"  {counter}")
                for cell in cells:
                    self.say(f"    {cell['index']:>5} {cell['packets']:>10} packets {cell['bytes']:>13} bytes")

    def do_restart(self, line: str) -> None:
        """Switch a switch off and on: program, tables and registers are lost, and the controller brings them back.
        Usage: restart SWITCH"""
        words = self.words(line, 1)
        if not words:
            raise UserError("which switch? restart SWITCH")
        name = self.switch(words[0])
        started_s = time.monotonic()
        self.runtime.restart_switch(name)
        # A switch without its program has no counters to read, and the program comes with the whole plan.
        while True:
            try:
                self.runtime.counters(name)
                break
            except UserError as error:
                if time.monotonic() - started_s > RETURN_TIMEOUT_S:
                    raise UserError(f"{name} is not back after {RETURN_TIMEOUT_S:.0f} s: {error}") from None
                time.sleep(RETRY_S)
        self.say(f"{name} holds its part of the plan again, after {1e3 * (time.monotonic() - started_s):.0f} ms")

    def do_wait(self, line: str) -> None:
        """Wait until every switch is connected, and ask each whether it holds its part of the plan.
        Usage: wait
        Registers and meters are not asked for: packets change them."""
        self.words(line, 0)
        deadline_s = time.monotonic() + RETURN_TIMEOUT_S
        while away := [row["name"] for row in self.runtime.client.switches() if not row["connected"]]:
            if time.monotonic() > deadline_s:
                raise UserError(f"not there after {RETURN_TIMEOUT_S:.0f} s: {', '.join(away)}")
            time.sleep(RETRY_S)
        names = [switch.name for switch in self.topology.switches]
        found = {name: self.runtime.client.differences(name) for name in names}
        for name, lines in found.items():
            if lines:
                more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
                self.say(
                    f"{name} does not hold its part of the plan: {lines[0]}{more}; restart {name} brings it back"
                )
        if silent := [name for name, lines in found.items() if lines is None]:
            self.say(f"these cannot tell what they hold: {', '.join(silent)}")
        if not any(found.values()) and not silent:
            self.say(f"all {len(names)} switches hold their part of the plan")
