"""capture: what passes links and hosts, into files for Wireshark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.experiments.captures import SUFFIX
from gradbed.experiments.prompt.base import BasePrompt, starting
from gradbed.topo.places import place

LIMITS = ("count", "seconds")
MOST_SECONDS = 1e6


class _Running(NamedTuple):
    """drops: what the kernel had lost before."""

    place: str
    drops: int


class CaptureCommands(BasePrompt):
    """Of links between switches, as well as those to hosts."""

    def __init__(self, *arguments: Any) -> None:
        self._captures: dict[Path, _Running] = {}
        super().__init__(*arguments)

    def do_capture(self, line: str) -> None:
        """Write the packets of a link or a host to a file for Wireshark, in the background.
        Usage: capture LINK|HOST [FILE] [count N] [seconds S]   until it has so many, or for so long, or until stopped
               capture                                          those that go on, and how many packets they have
               capture stop [LINK|HOST]                         end them, or those of one place
        A link is written A-B, by the names of its two nodes. The FILE is pcapng, by default LINK.pcapng.
        Example: capture l1-s1 count 100"""
        words = self.words(line, 6)
        if not words:
            self._list_captures()
        elif words[0] == "stop":
            if len(words) > 2:
                raise UserError(f"{words[2]!r} is too much; see help capture")
            self._stop_captures(words[1:])
        else:
            self._start_capture(words)

    def complete_capture(self, text: str, line: str, begin: int, end: int) -> list[str]:
        # readline takes what follows a "-" for a word of its own.
        *before, word = line[:end].split(" ")[1:]
        if before and before[0] != "stop":
            return starting(text, LIMITS)
        links = [f"{a}-{b}" for link in self.topology.links for a, b in _both_ways(link.a.node, link.b.node)]
        names = [*(host.name for host in self.topology.hosts), *links, *([] if before else ["stop"])]
        return [name[len(word) - len(text) :] for name in starting(word, names)]

    def postcmd(self, stop: Any, line: str) -> Any:
        if self._captures:
            for state in self.testbed.fabric.captures():
                if state.is_over and state.file in self._captures:
                    self._stop(state.file)
        return super().postcmd(stop, line)

    def close(self) -> None:
        self._stop_captures([])
        super().close()

    def _start_capture(self, words: list[str]) -> None:
        found = place(self.topology, words[0])
        rest = words[1:]
        name = rest.pop(0) if rest and rest[0] not in LIMITS else f"{found.name}{SUFFIX}"
        limits = _limits(rest)
        file = Path(name).absolute()
        drops = self._kernel_drops()
        self.testbed.fabric.start_capture(file, found, limits.get("count"), limits.get("seconds"))
        self._captures[file] = _Running(found.name, drops)
        self.say(f"{found.name}: capturing to {name}")

    def _list_captures(self) -> None:
        going_on = [state for state in self.testbed.fabric.captures() if not state.is_over]
        for state in going_on:
            self.say(f"{state.file}: {_packets(state.packets)} so far")
        if not going_on:
            self.say("nothing is being captured; 'capture l1-s1' would begin, see help capture")

    def _stop_captures(self, names: list[str]) -> None:
        wanted = [place(self.topology, name).name for name in names]
        files = [file for file, running in self._captures.items() if not wanted or running.place in wanted]
        if names and not files:
            raise UserError(f"{names[0]} is not being captured")
        for file in files:
            self._stop(file)

    def _stop(self, file: Path) -> None:
        running = self._captures.pop(file)
        packets = self.testbed.fabric.stop_capture(file)
        if (person := caller()) is not None:
            person.own(file)
        lost = self._kernel_drops() - running.drops
        unseen = f"; the kernel lost {_packets(lost)} before the switches saw them" if lost else ""
        self.say(f"{running.place}: {_packets(packets)} in {file}{unseen}")

    def _kernel_drops(self) -> int:
        found = self.testbed.fabric.data_plane_statistics()
        return 0 if found is None else found.socket_drops


def _limits(words: list[str]) -> dict[str, Any]:
    """count N and seconds S. UserError."""
    limits: dict[str, Any] = {}
    for word, value in zip(words[::2], [*words[1::2], None], strict=False):
        if word not in LIMITS or value is None:
            raise UserError("capture LINK|HOST [FILE] [count N] [seconds S]; see help capture")
        try:
            limits[word] = int(value) if word == "count" else float(value)
        except ValueError:
            raise UserError(f"{word} is a number, not {value!r}") from None
        if not 0 < limits[word] <= MOST_SECONDS:
            raise UserError(f"{word} is above 0 and at most {MOST_SECONDS:.0f}, not {value}")
    return limits


def _packets(count: int) -> str:
    return f"{count} packet{'' if count == 1 else 's'}"


def _both_ways(a: str, b: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (a, b), (b, a)
