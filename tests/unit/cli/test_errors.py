"""Wrong input: one clear line on standard error and exit status 2."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import ROOT, gradbed
from tests.conftest import Ended, GradbedHere


@pytest.fixture(autouse=True)
def at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


AGGREGATION = ["run", "aggregation"]
P4 = "p4src/router.p4"

WRONG = [
    ([*AGGREGATION, "--topology", "fat-tree:3"], ["--topology: ", "even", "3"]),
    ([*AGGREGATION, "--topology", "fat-tree:x"], ["--topology: ", "fat-tree:K"]),
    ([*AGGREGATION, "--topology", "fat-tree:400"], ["--topology: ", "at most 228", "400"]),
    ([*AGGREGATION, "--topology", "fat-tree:28"], ["fat-tree:28 is too large", "5488 hosts", "GB"]),
    ([*AGGREGATION, "--topology", "torus:4"], ["--topology: ", "torus"]),
    ([*AGGREGATION, "--topology", "star"], ["--topology: ", "star:HOSTS"]),
    ([*AGGREGATION, "--topology", "star:0"], ["--topology: ", "1 to 250", "got 0"]),
    ([*AGGREGATION, "--topology", "star:1"], ["9 hosts", "has 1"]),
    ([*AGGREGATION, "--topology", "leaf-spine:4,2"], ["--topology: ", "LEAVES,SPINES,HOSTS "]),
    ([*AGGREGATION, "--topology", "leaf-spine:0,0,0"], ["--topology: ", "leaves, got 0"]),
    ([*AGGREGATION, "--workers", "16"], ["16 workers", "16"]),
    ([*AGGREGATION, "--workers", "0"], ["--workers: ", "0"]),
    ([*AGGREGATION, "--workers", "many"], ["--workers: ", "integer"]),
    ([*AGGREGATION, "--workers", "65", "--topology", "star:70"], ["--workers: ", "64", "65"]),
    ([*AGGREGATION, "--workers"], ["--workers", "requires an argument"]),
    ([*AGGREGATION, "--loss", "1.5"], ["--loss: ", "1.5"]),
    ([*AGGREGATION, "--loss", "x"], ["--loss: ", "number"]),
    ([*AGGREGATION, "--duplicate", "-0.1"], ["--duplicate: ", "-0.1"]),
    ([*AGGREGATION, "--lanes", "100"], ["--lanes: ", "32"]),
    ([*AGGREGATION, "--switch", "tofino"], ["--switch: ", "bmv2"]),
    ([*AGGREGATION, "--links", "fiber"], ["--links: ", "veth"]),
    ([*AGGREGATION, "--delay-us", "-1"], ["--delay-us: ", "-1"]),
    ([*AGGREGATION, "--delay-us", "1.5"], ["--delay-us: ", "integer"]),
    ([*AGGREGATION, "--rate-mbps", "-1"], ["--rate-mbps: ", "-1"]),
    ([*AGGREGATION, "--queue-packets", "0"], ["--queue-packets: ", "0"]),
    ([*AGGREGATION, "--slots", "0"], ["--slots: ", "0"]),
    ([*AGGREGATION, "--seed", "-1"], ["--seed: ", "0"]),
    ([*AGGREGATION, "--rounds", "0"], ["--rounds: ", "0"]),
    ([*AGGREGATION, "--hidden-units", "-1"], ["--hidden-units: ", "-1"]),
    ([*AGGREGATION, "--window-fragments", "0"], ["--window-fragments: ", "0"]),
    ([*AGGREGATION, "--min-timeout-us", "0"], ["--min-timeout-us: ", "0"]),
    ([*AGGREGATION, "--congestion-packets", "-1"], ["--congestion-packets: ", "-1"]),
    ([*AGGREGATION, "--jobs", "0"], ["--jobs: ", "0"]),
    ([*AGGREGATION, "--jobs", "9"], ["9 job(s)", "81 hosts"]),
    ([*AGGREGATION, "--placement", "best"], ["--placement: ", "shared-path", "best"]),
    ([*AGGREGATION, "--placement", "explicit"], ["placement explicit", "switches"]),
    ([*AGGREGATION, "--placement", "explicit", "--switches", "zz"], ["zz"]),
    ([*AGGREGATION, "--placement", "explicit", "--switches", "h3"], ["h3 is a host"]),
    ([*AGGREGATION, "--placement", "lp", "--switches", "e1"], ["e1 is the server's ToR, which sums anyway"]),
    ([*AGGREGATION, "--placement", "none", "--switches", "e1"], ["placement none chooses its own"]),
    ([*AGGREGATION, "--placement", "none", "--capacity-mbps", "2"], ["does not use a capacity"]),
    ([*AGGREGATION, "--programmable", "-1"], ["--programmable: ", "-1"]),
    ([*AGGREGATION, "--capacity-mbps", "0"], ["--capacity-mbps: ", "0"]),
    ([*AGGREGATION, "--demand-mbps", "-3"], ["--demand-mbps: ", "-3"]),
    ([*AGGREGATION, "--demand-mbps", "500"], ["demand", "cannot be met"]),
    ([*AGGREGATION, "--rate-mbps", "0"], ["placement greedy needs the rates of links", "h1 and e1"]),
    ([*AGGREGATION, "--jitter-us", "100"], ["link jitter is between 0 and the delay of 50 us, got 100 us"]),
    (
        [*AGGREGATION, "--jobs", "2", "--workers", "3", "--slot-policy", "static", "--slots", "1"],
        ["--slots: ", "static share each of 1 slots"],
    ),
    ([*AGGREGATION, "--clock", "sidereal"], ["--clock: ", "virtual"]),
    ([*AGGREGATION, "--workload", "chess"], ["--workload: ", "training"]),
    ([*AGGREGATION, "--hidden-units", "3", "--workload", "synthetic"], ["--hidden-units: ", "synthetic"]),
    ([*AGGREGATION, "--clock", "virtual", "--switch", "bmv2"], ["--switch: ", "real clock"]),
    ([*AGGREGATION, "--clock", "virtual", "--legacy", "openflow"], ["--legacy p4", "real"]),
    ([*AGGREGATION, "--legacy", "old"], ["--legacy: ", "openflow"]),
    ([*AGGREGATION, "--slot-policy", "fair"], ["--slot-policy: ", "static"]),
    ([*AGGREGATION, "--congestion-control", "cubic"], ["--congestion-control: ", "aimd"]),
    ([*AGGREGATION, "--baselines", "rings"], ["--baselines: ", "gloo"]),
    ([*AGGREGATION, "--scale", "1", "--output", "/dev/null/x"], ["--output: ", "/dev/null/x"]),
    ([*AGGREGATION, "--fast"], ["--fast"]),
    (["run", "agregation"], ["agregation"]),
    (["run", "torch"], ["script"]),
    (
        ["run", "torch", "x.py", "--compress", "sign", "--placement", "none"],
        ["--placement", "--compress", "leave one"],
    ),
    (["run", "compression", "--transport", "tcp"], ["--transport tcp", "--clock real"]),
    (["run", "compression", "--transport", "tcp", "--clock", "real"], ["--pacing none", "--ratio none"]),
    (["run", "compression", "--background-load", "0.5"], ["8 workers and a server and a sender", "10 hosts"]),
    (["run", "study"], ["STUDY.yaml"]),
    (["run", "absent.yaml"], ["cannot read absent.yaml: No such file or directory"]),
    (["demo", "extra"], ["extra"]),
    (["demo", "--help=1"], ["--help"]),
    (["up", "--rest-port", "99999"], ["--rest-port", "99999"]),
    (["up", "--rest-port", "x"], ["--rest-port: ", "integer"]),
    (["up", "--p4runtime-cert", "a.crt"], ["both --p4runtime-cert and --p4runtime-key"]),
    (["up", "--p4runtime-client-ca", "a.crt"], ["both --p4runtime-cert and --p4runtime-key"]),
    (["up", "--p4runtime-cert", "a.crt", "--p4runtime-key", "a.key"], ["cannot read", "a.key"]),
    (["up", "--p4runtime-address", "unix:/x"], ["--p4runtime-address unix:/x", "HOST:PORT"]),
    (["up", "--p4runtime-address", "x"], ["HOST:PORT"]),
    (["up", "--topology", "ring:3"], ["--topology: ", "ring"]),
    (["figures", "nothing"], ["nothing"]),
    (["figures", "aggregation", "--only", "9"], ["--only: aggregation has no figure '9'; there are: 1, 2"]),
    (["figures", "aggregation", "--scale", "2"], ["--scale: ", "1"]),
    (["calibrate", "now"], ["now"]),
    (["p4", "nothing"], ["nothing"]),
    (["p4", "compile"], ["source"]),
    (["p4", "compile", "absent.p4"], ["absent.p4"]),
    (["p4", "compile", "p4src"], ["p4src"]),
    (["p4", "compile", P4, "--output", "/no/such/folder/x"], ["/no/such/folder/x"]),
    (["p4", "compile", P4, "--no-warning", "nothing"], ["nothing", "unused"]),
    (["p4", "stf", "absent.p4", "absent.stf"], ["absent.stf"]),
    (["p4", "trace", P4], ["packet"]),
    (["p4", "coverage", P4], ["--pcap", "--stf"]),
    (["p4", "coverage", P4, "--port", "1"], ["--pcap"]),
    (["p4", "coverage", P4, "--pcap", "absent.pcap"], ["absent.pcap"]),
    (["p4", "shell", "--device-id", "0"], ["--device-id: ", "1"]),
    (["--verbose"], ["--verbose"]),
    (["rnu"], ["rnu"]),
]

STUDY = """name: small
system: aggregation
topology: {kind: "star:3"}
workload: {workers: 2}
sweep: {product: {switches.placement: [none]}}
"""

BROKEN = [
    ("study.yaml", b"", ["run", "{}"]),
    ("study.yaml", b"\xff\xfe\x00", ["run", "{}"]),
    ("study.yaml", b"- a\n- b\n", ["run", "{}"]),
    ("study.yaml", b"name: [", ["run", "{}"]),
    ("study.yaml", b"name: a\nname: b\n", ["run", "{}"]),
    ("study.yaml", b"name: small\nsystem: nothing\n", ["run", "{}"]),
    ("study.yaml", STUDY.replace("star:3", "ring:3").encode(), ["run", "{}"]),
    ("study.yaml", STUDY.replace("workers: 2", "workers: two").encode(), ["run", "{}"]),
    ("study.yaml", STUDY.replace("workers: 2", "wrokers: 2").encode(), ["run", "{}"]),
    ("study.yaml", STUDY.replace("switches.placement", "switches.places").encode(), ["run", "{}"]),
    ("study.yaml", STUDY.replace("[none]", "[]").encode(), ["run", "{}"]),
    ("study.yaml", b"a: &x {b: *x}\n", ["run", "{}"]),
    ("program.json", b"{", ["p4", "trace", "{}", "00"]),
    ("program.json", b"[]", ["p4", "trace", "{}", "00"]),
    ("program.json", b"{}", ["p4", "trace", "{}", "00"]),
    ("packets.stf", b"pakcet 0 00\n", ["p4", "coverage", P4, "--stf", "{}"]),
    ("packets.stf", b"\xff\n", ["p4", "coverage", P4, "--stf", "{}"]),
    ("packets.stf", b"packet zero 00\n", ["p4", "stf", P4, "{}"]),
    ("packets.pcap", b"", ["p4", "coverage", P4, "--pcap", "{}"]),
    ("packets.pcap", b"\xd4\xc3\xb2\xa1", ["p4", "coverage", P4, "--pcap", "{}"]),
    ("entries", b"{", ["p4", "trace", P4, "00", "--entries", "{}"]),
    ("entries", b'{"switches": 1}', ["p4", "trace", P4, "00", "--entries", "{}"]),
]


def said(ended: Ended) -> str:
    """The one line that a wrong command says."""
    assert (ended.status, ended.out, len(ended.err.splitlines())) == (2, "", 1), ended
    return ended.err


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_one_line_and_status_2(arguments: list[str], words: list[str], gradbed_here: GradbedHere) -> None:
    line = said(gradbed_here(*arguments))
    assert line.startswith("gradbed: ")
    assert all(word in line for word in words), line


@pytest.mark.parametrize(("name", "content", "arguments"), BROKEN)
def test_broken_files_are_named_in_one_line(
    name: str, content: bytes, arguments: list[str], tmp_path: Path, gradbed_here: GradbedHere
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    line = said(gradbed_here(*(word.replace("{}", str(path)) for word in arguments)))
    assert str(path) in line, line


def test_an_address_for_bmv2s_p4runtime() -> None:
    outcome = gradbed("up", "--switch", "bmv2", "--p4runtime-address", "127.0.0.1:1")
    assert outcome.returncode == 2
    assert (
        outcome.stderr.splitlines()[-1]
        == "gradbed: --p4runtime-address needs gradbed's switches: use --switch gradbed"
    )


def test_as_a_process() -> None:
    outcome = gradbed("rnu")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == "gradbed: No such command 'rnu'. Did you mean 'run'? (see --help)\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["dmeo"], "demo"),
        (["run", "agregation"], "aggregation"),
        (["p4", "complie"], "compile"),
        (["exercise", "strat"], "start"),
    ],
)
def test_a_near_command_is_suggested(words: list[str], meant: str, gradbed_here: GradbedHere) -> None:
    assert f"Did you mean '{meant}'?" in said(gradbed_here(*words))


def test_a_p4_syntax_error_shows_place_line_and_caret(tmp_path: Path) -> None:
    source = tmp_path / "broken.p4"
    source.write_text("#include <core.p4>\n\nheader ethernet_t {\n    bit<48> dst_addr\n    bit<48> src_addr;\n}\n")
    outcome = gradbed("p4", "compile", str(source))
    assert outcome.returncode == 2
    assert "Traceback" not in outcome.stderr
    first, shown, caret = outcome.stderr.splitlines()
    assert first == f"{source}:4:21: error: expected ';' after the field"
    assert shown == "    bit<48> dst_addr"
    assert caret.index("^") == len(shown)


# The real one asks the same function, in its network.
@pytest.mark.parametrize("clock", [pytest.param("real", marks=pytest.mark.nightly), "virtual"])
def test_no_c_compiler(clock: str, tmp_path: Path) -> None:
    words = ("run", "aggregation", "--clock", clock, "--output", str(tmp_path / "results"))
    words += ("--scale", "1") if clock == "real" else ()
    outcome = gradbed(*words, CC="no-such-compiler", GRADBED_CACHE=str(tmp_path))
    assert outcome.returncode == 2
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert "no C compiler found (no-such-compiler)" in outcome.stderr
    if clock == "virtual":
        assert not (tmp_path / "results").exists()


def test_not_root() -> None:
    outcome = subprocess.run(
        [
            *("setpriv", "--reuid=65534", "--clear-groups"),
            *("--inh-caps=+dac_override", "--ambient-caps=+dac_override"),  # the checkout may be in /root
            *(sys.executable, "-m", "gradbed", "run", "aggregation"),
        ],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert outcome.returncode == 2, outcome
    assert len(outcome.stderr.splitlines()) == 1, outcome.stderr
    assert "root" in outcome.stderr
