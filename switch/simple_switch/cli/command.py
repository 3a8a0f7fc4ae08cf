"""The command simple_switch_CLI: its options and its shell."""

from __future__ import annotations

import cmd
import sys
from collections.abc import Sequence

from gradbed.common.errors import UserError
from gradbed.switch.shims.command_line import Option, parse, usage
from gradbed.switch.simple_switch.cli.arguments import CommandError, ProgramCatalogue
from gradbed.switch.simple_switch.cli.client import Client, Refused
from gradbed.switch.simple_switch.cli.replication import ReplicationCommands
from gradbed.switch.simple_switch.cli.state import StateCommands
from gradbed.switch.simple_switch.cli.tables import ProfileCommands

_OPTIONS = (
    Option(("--help", "-h"), help="print this"),
    Option(("--thrift-port",), "value", "port of the switch, as given to it (default: 9090)"),
    Option(("--thrift-ip",), "value", "host of the switch (default: 127.0.0.1)"),
    Option(("--device-id",), "value", "P4Runtime device id (default: the one that the switch has)"),
    Option(("--json", "--pre"), "value", ignored="the switch knows"),
)
_NOT_OFFERED = {
    "set_queue_depth": "give links queue_packets, or start a switch process (docs/drop-in.md)",
    "set_queue_rate": "give links rate_bps, or start a switch process (docs/drop-in.md)",
    "load_new_config_file": "push the program by P4Runtime",
    "swap_configs": "push the program by P4Runtime",
    "reset_state": "push the program once more by P4Runtime",
    "serialize_state": "read the state by P4Runtime",
    "set_crc16_parameters": "choose the algorithm in the program",
    "set_crc32_parameters": "choose the algorithm in the program",
    "mc_set_lag_membership": "use an action selector",
    "port_add": "name the interface when the switch starts: -i PORT@INTERFACE",
    "port_remove": "name the interfaces when the switch starts: -i PORT@INTERFACE",
}


class SimpleSwitchShell(ProfileCommands, ReplicationCommands, StateCommands, cmd.Cmd):
    """Reads commands from standard input. A mistake is one line on standard output, and the next command follows."""

    prompt = "RuntimeCmd: "
    intro = "P4Runtime in the words of simple_switch_CLI; help lists the commands"

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.program = ProgramCatalogue(client.p4info)
        self.rates_of_new_entries = {}

    def onecmd(self, line: str) -> bool:
        try:
            return bool(super().onecmd(line))
        except (CommandError, Refused) as error:
            print(f"Error: {error}")
            return False

    def do_show_ports(self, line: str) -> None:
        """show_ports: the switch's ports and their interfaces"""
        print(f"{'port #':^10}{'iface name':^20}{'status':^10}extra info\n{'=' * 50}")
        for port, interface, is_up in self.client.basics()["ports"]:
            print(f"{port:^10}{interface:^20}{'UP' if is_up else 'DOWN':^10}")

    def do_switch_info(self, line: str) -> None:
        """switch_info: its numbers"""
        basics = self.client.basics()
        sockets = dict.fromkeys(("notifications_socket", "elogger_socket", "debugger_socket"))
        for name, value in {
            "device_id": basics["device_id"],
            "thrift_port": basics["thrift_port"],
            **sockets,
        }.items():
            print(f"{name:25}: {value}")

    def do_get_time_elapsed(self, line: str) -> None:
        """get_time_elapsed: microseconds since the switch started"""
        print(self.client.basics()["elapsed_us"])

    def do_get_time_since_epoch(self, line: str) -> None:
        """get_time_since_epoch: microseconds since 1970 by the switch's clock"""
        print(self.client.basics()["since_epoch_us"])

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        name = line.split()[0]
        if name.startswith("#"):
            return
        if name in _NOT_OFFERED:
            raise CommandError(f"{name} is not offered: {_NOT_OFFERED[name]}")
        raise CommandError(f"there is no command {name}; help lists them")

    def do_EOF(self, line: str) -> bool:
        """End the shell at the end of the input."""
        print()
        return True

    def do_exit(self, line: str) -> bool:
        """exit: end the shell"""
        return True

    do_quit = do_exit

    def complete_names(self, text: str, *_: object) -> list[str]:
        """Complete names of tables, actions and arrays; for all commands."""
        program = self.program
        kinds = (program.tables, program.actions, program.counters, program.meters, program.registers)
        return [name for kind in kinds for name in kind.names() if name.startswith(text)]

    completedefault = complete_names


def main(arguments: Sequence[str]) -> int:
    """Run the command; return exit status 0, or 1 if there is no switch to talk to."""
    try:
        line = parse(_OPTIONS, arguments)
        if "--help" in line:
            print(f"Usage: simple_switch_CLI [--thrift-port PORT]\n{usage(_OPTIONS)}")
            return 0
        if line.unknown or line.positional:
            raise UserError(f"unknown argument {[*line.unknown, *line.positional][0]} (see --help)")
        address = f"{line.last('--thrift-ip') or '127.0.0.1'}:{line.number('--thrift-port', least=1) or 9090}"
        client = Client(address, line.number("--device-id"))
        try:
            SimpleSwitchShell(client).cmdloop()
        finally:
            client.close()
    except UserError as error:
        print(f"simple_switch_CLI: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
