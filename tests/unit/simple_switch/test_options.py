"""Command lines of simple_switch and simple_switch_grpc."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gradbed.common.errors import UserError
from gradbed.switch.server.addresses import ServerTls
from gradbed.switch.simple_switch.options import Answered, SwitchOptions, read_options


def grpc(*arguments: str) -> SwitchOptions:
    return read_options("simple_switch_grpc", arguments)


def test_as_the_p4_tutorials_start_it(tmp_path: Path) -> None:
    line = (
        f"-i 1@s1-eth1 -i 2@s1-eth2 --pcap {tmp_path} --nanolog ipc:///tmp/log.ipc --device-id 3 build/basic.json "
        "--log-console --thrift-port 9092 -- --grpc-server-addr 0.0.0.0:50053 --cpu-port 510 --priority-queues 4"
    )
    options = grpc(*line.split())
    assert options.interfaces == {1: "s1-eth1", 2: "s1-eth2"}
    assert options.device_id == 3
    assert options.program == Path("build/basic.json")
    assert options.grpc_addresses == ("0.0.0.0:50053",)
    assert options.thrift_port == 9092
    assert (options.cpu_port, options.drop_port, options.priorities) == (510, 511, 4)
    assert options.pcap_dir == tmp_path
    assert options.log_console
    assert options.log_level == logging.DEBUG
    assert [note.split()[0] for note in options.notes] == ["--nanolog", "--thrift-port:"]


def test_defaults() -> None:
    options = grpc("--no-p4")
    assert options.program is None
    assert options.grpc_addresses == ("127.0.0.1:9559",)
    assert (options.device_id, options.cpu_port, options.drop_port, options.priorities) == (0, None, 511, 8)
    assert (options.thrift_port, options.pcap_dir, options.files_delay_s, options.log_file) == (None,) * 4
    assert options.notes == ()
    assert not options.bmv2_arbitration
    assert grpc("--bmv2-arbitration", "--no-p4").bmv2_arbitration


def test_the_plain_switch_is_reached_where_thrift_would_be() -> None:
    options = read_options("simple_switch", ["prog.json", "--", "--enable-swap", "--drop-port", "0"])
    assert options.grpc_addresses == ()
    assert options.thrift_port == 9090
    assert options.drop_port == 0
    assert read_options("simple_switch", ["prog.json", "--thrift-port=22222"]).thrift_port == 22222


def test_target_options_may_follow_the_program_or_no_p4() -> None:
    assert grpc("--no-p4", "--", "--cpu-port", "255", "--drop-port=510").cpu_port == 255
    assert grpc("x.json", "--", "--cpu-port=255").cpu_port == 255


def test_tls() -> None:
    files = ["--grpc-server-cacert=ca", "--grpc-server-cert=cert", "--grpc-server-key", "key"]
    assert grpc("--no-p4").tls is None
    server = grpc("--no-p4", "--", "--grpc-server-ssl", *files).tls
    assert server == ServerTls(Path("cert"), Path("key"))
    mutual = grpc("--no-p4", "--", "--grpc-server-ssl", "--grpc-server-with-client-auth", *files).tls
    assert mutual == ServerTls(Path("cert"), Path("key"), Path("ca"))
    without = grpc("--no-p4", "--", "--grpc-server-with-client-auth", *files)
    assert without.tls is None
    assert [note.split()[0] for note in without.notes if note.endswith("no effect without --grpc-server-ssl")] == [
        "--grpc-server-cert",
        "--grpc-server-key",
        "--grpc-server-cacert",
        "--grpc-server-with-client-auth",
    ]


def test_log_files(tmp_path: Path) -> None:
    options = grpc(
        "--no-p4", "--log-file", "ss-log", "--log-file-max-size", "1000", "--log-file-max-files", "0", "-L", "warn"
    )
    assert options.log_file == Path("ss-log.txt")
    assert (options.log_file_bytes, options.log_files_kept, options.log_level) == (1000, 0, logging.WARNING)


def test_what_has_no_effect_is_named() -> None:
    general = "--no-p4 x.json --debugger --notifications-addr ipc:x --dump-packet-data 9 --max-port-count 8"
    notes = grpc(*general.split(), *["--", "--priority-queues", "9", "--bogus", "x"]).notes
    assert len(notes) == 8
    assert "x.json is not loaded because of --no-p4" in notes
    assert any("--priority-queues 9" in note and "8 queues" in note for note in notes)
    assert "unknown target option --bogus has no effect" in notes
    assert "unknown target option x has no effect" in notes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "--no-p4"),
        ("--no-p4 -i s1-eth1", r"write PORT@INTERFACE, for instance 1@s1-eth1"),
        ("--no-p4 -i x@s1-eth1", "write PORT@INTERFACE"),
        ("--no-p4 -i 1@", "write PORT@INTERFACE"),
        ("--no-p4 -i 512@s1-eth1", r"9 bits, so they are 0\.\.511"),
        ("--no-p4 -i 1@a -i 1@b", "port 1 is a already"),
        ("--no-p4 --pcap=/no/such/folder", "there is no folder /no/such/folder"),
        ("--no-p4 --log-console --log-file x", "--log-console or --log-file"),
        ("--no-p4 -L loud", "levels are trace, debug, info, warn, error, off"),
        ("--no-p4 --device-id x", "--device-id takes a number"),
        ("--no-p4 --nonsense", r"option --nonsense is unknown \(see simple_switch_grpc --help\)"),
        ("--no-p4 --grpc-server-addr x", "option --grpc-server-addr is a target option: put it behind --"),
        ("--no-p4 --restore-state x", "saved state cannot be restored"),
        ("--no-p4 -- --grpc-server-ssl", "--grpc-server-ssl needs --grpc-server-cert"),
        ("--no-p4 -- --grpc-server-ssl --grpc-server-cert a", "--grpc-server-ssl needs --grpc-server-key"),
        (
            "--no-p4 -- --grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-with-client-auth",
            "needs --grpc-server-cacert",
        ),
        ("--no-p4 -- --cpu-port 0", "--cpu-port takes a number from 1 on"),
        ("--no-p4 -- --dp-grpc-server-addr x:1", "attach interfaces"),
        ("--no-p4 -- --load-modules x.so", "externs other than v1model's"),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        grpc(*line.split())


@pytest.mark.parametrize(
    ("line", "answer"),
    [("--help", "--grpc-server-addr"), ("-v", "gradbed"), ("--json-version", "2.2"), ("-h", "--thrift-port")],
)
def test_answers(line: str, answer: str) -> None:
    with pytest.raises(Answered, match=answer):
        grpc(*line.split())


def test_the_space_that_some_scripts_put_behind_i() -> None:
    assert grpc("--no-p4", "-i 0@pcap0").interfaces == {0: "pcap0"}
