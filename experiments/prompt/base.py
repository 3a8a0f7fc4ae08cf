"""Mininet's prompt, changed so that no command ends it: whatever goes wrong is one line."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mininet.cli import CLI
from mininet.log import output
from mininet.node import Node

from gradbed.common.errors import UserError, nobody_reads, say, unforeseen

if TYPE_CHECKING:
    from gradbed.experiments.runtimes.real import RealRuntime
    from gradbed.experiments.setup import TrialTask
    from gradbed.experiments.system import System


class BasePrompt(CLI):  # type: ignore[misc]
    """A prompt that runs from its construction until `exit`, `quit` or the end of its input.

    Commands are methods do_NAME; a docstring's first line says what the command is for, the rest is its help.
    """

    def __init__(self, system: System, runtime: RealRuntime, task: TrialTask) -> None:
        self.system = system
        self.runtime = runtime
        self.topology = runtime.topology
        self.task = task
        super().__init__(runtime.network.mininet)

    def getLocals(self) -> dict[str, Any]:
        """Return the names for py and px; Python's own exit would close standard input."""

        def leave(*_ignored: Any) -> None:
            raise UserError("'exit' without py and px ends the network")

        names: dict[str, Any] = super().getLocals()
        names.update(exit=leave, quit=leave)
        return names

    def onecmd(self, line: str) -> Any:
        """Run a command; true or a text: it was the last one."""
        try:
            return super().onecmd(line)
        except (Exception, SystemExit) as error:  # of `px exit()`, for one
            if nobody_reads(error):
                raise
            self.complain(line, error)
            self._settle()
        return False

    def say(self, text: str) -> None:
        say(text, self.stdout)

    def complain(self, line: str, error: BaseException) -> None:
        command = (line.split() or [""])[0]
        words = " ".join(str(error).split()) if isinstance(error, UserError) else unforeseen(error)
        self.say(f"*** {command}: {words}")

    def _settle(self) -> None:
        """Interrupt nodes that still run a command that was given up."""
        for node in self.mn.values():
            while node.waiting:
                node.sendInt()
                node.waitOutput()

    def close(self) -> None:
        """End what runs in the background."""

    # Words.

    def words(self, line: str, at_most: int) -> list[str]:
        """Split a line into words.

        Raises:
            UserError: there are more of them, or a quotation mark is not closed.
        """
        try:
            found = shlex.split(line)
        except ValueError as error:
            raise UserError(str(error)) from None
        if len(found) > at_most:
            raise UserError(f"{found[at_most]!r} is too much; see help")
        return found

    def switch(self, name: str) -> str:
        """Return the name if a switch has it.

        Raises:
            UserError: there is no such switch.
        """
        return _known("switch", name, [switch.name for switch in self.topology.switches])

    def host(self, name: str) -> str:
        return _known("host", name, [host.name for host in self.topology.hosts])

    def switches(self, line: str) -> list[str]:
        """Return the named switches, or all."""
        names = self.words(line, len(self.topology.switches))
        return [self.switch(name) for name in names] or [switch.name for switch in self.topology.switches]

    # Completion.

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        """Complete commands, and nodes that are to run one."""
        return [*super().completenames(text, *ignored), *(name for name in self.mn if name.startswith(text))]

    def completedefault(self, text: str, *ignored: Any) -> list[str]:
        return starting(text, list(self.mn))

    def complete_switches(self, text: str, *ignored: Any) -> list[str]:
        return starting(text, [switch.name for switch in self.topology.switches])

    def complete_hosts(self, text: str, *ignored: Any) -> list[str]:
        return starting(text, [host.name for host in self.topology.hosts])

    # Commands of Mininet that ended the network, or did not do what they say.

    def default(self, line: str) -> None:
        first = line.split()[0]
        if first not in self.mn:
            raise UserError(f"there is no such command or node{near(first, self.completenames(''))}")
        super().default(line)

    def waitForNode(self, node: Node) -> None:
        if self.isatty():
            super().waitForNode(node)
            return
        # What a script has on its next lines is for the prompt, not for the node's command.
        while node.waiting:
            try:
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def do_help(self, line: str) -> None:
        """List the commands, or tell about one.
        Usage: help [COMMAND]"""
        if words := self.words(line, 1):
            method = getattr(self, f"do_{words[0]}", None)
            if method is None or not method.__doc__:
                raise UserError(f"no command is called {words[0]!r}{near(words[0], self._commands())}")
            self.say(inspect.cleandoc(method.__doc__))
            return
        own = [name for name in self._commands() if not self._is_mininets(name)]
        width = max(map(len, own))
        self.say("Of gradbed ('help COMMAND' tells more, the TAB key completes):")
        for name in own:
            about = inspect.cleandoc(getattr(self, f"do_{name}").__doc__ or "").split("\n")[0]
            self.say(f"  {name:<{width}}  {about}")
        self.say(f"Of Mininet:\n  {' '.join(name for name in self._commands() if self._is_mininets(name))}")
        self.say("NODE COMMAND runs a command of the shell there; names of hosts become addresses: h1 ping -c 1 h2")

    def _commands(self) -> list[str]:
        return sorted({name[3:] for name in self.get_names() if name.startswith("do_")} - {"EOF"})

    def _is_mininets(self, name: str) -> bool:
        return str(getattr(self, f"do_{name}").__module__).startswith("mininet.")

    def do_source(self, line: str) -> Any:
        """Read commands from a file.
        Usage: source FILE"""
        words = self.words(line, 1)
        if not words:
            raise UserError("which file? source FILE")
        try:
            with open(words[0], encoding="utf-8") as file:
                commands = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UserError(f"cannot read {words[0]}: {reason}") from None
        return any(self.postcmd(self.onecmd(self.precmd(command)), command) for command in commands)

    def do_dpctl(self, line: str) -> None:
        """Run a command of ovs-ofctl for all OpenFlow switches.
        Usage: dpctl COMMAND [ARGUMENT ...]
        P4 switches know no OpenFlow: 'plan' shows what they hold."""
        words = line.split()
        if not words:
            raise UserError("which command? such as dpctl dump-flows")
        bridges = [switch for switch in self.mn.switches if hasattr(switch, "dpctl")]
        if not bridges:
            raise UserError("all switches are P4 switches, which know no OpenFlow: 'plan' shows what they hold")
        for bridge in bridges:
            self.say(f"*** {bridge.name}\n{bridge.dpctl(*words)}")

    def do_switch(self, line: str) -> None:
        """Switches are not started and stopped here: restart NAME restarts one, link A B down cuts a link."""
        raise UserError("'restart NAME' restarts a switch, 'link A B down' cuts a link of it")


def starting(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that begin with the text, as readline wants them."""
    return [name for name in names if name.startswith(text)]


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise UserError(f"there is no {kind} {name!r}{near(name, known)}")
    return name


def near(word: str, known: Collection[str], lists: str = "help' and 'nodes") -> str:
    """Return a suggestion for a misspelled word, or else the command that lists what there is."""
    found = get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; see '{lists}'"
