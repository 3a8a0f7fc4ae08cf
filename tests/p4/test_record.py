"""python -m tools.recordings, on our own compiler and switch: in this process, and as if they were p4c and BMv2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradbed.switch.shims import write_shims
from tests.conftest import ToolHere
from tests.p4.recordings import PATHS, ROOT, recording
from tools.recordings import Recording, compile_recorded, read_recording, replay, write_recording
from tools.recordings.recording import ends_in_tag, without_tag

OWN = ("--compiler", "gradbed", "--switch", "gradbed")
ROUTER = ROOT / "p4src" / "router.p4"


def replayed(recorded: Recording) -> list[str]:
    return replay(recorded, recorded.bmv2_json, recorded.info())


def first(name: str, frames: int, folder: Path) -> Path:
    """A recording of BMv2, without all but the first frames."""
    path = folder / "first.json.gz"
    whole = recording(name)
    write_recording(whole.model_copy(update={"frames": whole.frames[:frames]}), path)
    return path


def test_what_is_recorded_can_be_replayed(tool_here: ToolHere, tmp_path: Path) -> None:
    path = tmp_path / "recorded.json.gz"
    ended = tool_here("recordings", str(ROUTER), "--frames", "60", "--seed", "3", "-o", str(path), *OWN)
    assert ended.status == 0 and "60 frames" in ended.out
    recorded = read_recording(path)
    assert (recorded.seed, recorded.compiler, recorded.switch) == (3, "gradbed", "gradbed")
    assert any(frame.out for frame in recorded.frames) and recorded.inserted and any(recorded.state.values())
    assert set(recorded.sources) == {recorded.program} and recorded.sources[recorded.program] == ROUTER.read_text()
    assert replayed(recorded) == []
    assert replay(recorded, *compile_recorded(recorded)) == []


def test_the_seed_decides(tool_here: ToolHere, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "same", "other")]
    for path, seed in zip(paths, ("1", "1", "2"), strict=True):
        tool_here("recordings", str(ROUTER), "--frames", "20", "--seed", seed, "-o", str(path), *OWN)
    one, same, other = (path.read_bytes() for path in paths)
    assert one == same != other


def test_frames_and_entries_of_another_recording(tool_here: ToolHere, tmp_path: Path) -> None:
    """Ours gives what BMv2 gave: the recorder works as the recording says."""
    like, path = first("router.11", 100, tmp_path), tmp_path / "again.json.gz"
    assert tool_here("recordings", str(ROUTER), "--like", str(like), "-o", str(path), *OWN).status == 0
    again, was = read_recording(path), read_recording(like)
    assert again.frames == was.frames and again.inserted == was.inserted and again.defines == was.defines


def test_registers_of_times_are_left_out(tool_here: ToolHere, tmp_path: Path) -> None:
    like = first("training.11", 200, tmp_path)
    training = str(ROOT / "p4src" / "training.p4")
    path = tmp_path / "again.json.gz"
    tool_here("recordings", training, "--like", str(like), "-o", str(path), *OWN)
    again = read_recording(path)
    assert again.times == recording("training.11").times
    assert again.state["waiting"] == {} and again.state["flowlet_choice"]


def test_without_p4c_or_bmv2_one_line_says_what_to_do(tool_here: ToolHere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADBED_P4C", "no-p4c")
    monkeypatch.setenv("GRADBED_BMV2", "no-bmv2")
    for more, word in (((), "p4c"), (("--compiler", "gradbed"), "BMv2")):
        ended = tool_here("recordings", str(ROUTER), *more)
        assert ended.status == 2 and ended.err.count("\n") == 1
        assert word in ended.err and "is not installed" in ended.err


def test_a_program_that_is_not_there(tool_here: ToolHere, tmp_path: Path) -> None:
    ended = tool_here("recordings", str(tmp_path / "none.p4"), *OWN)
    assert ended.status == 2 and "no such P4 program" in ended.err


@pytest.mark.root
@pytest.mark.thorough
def test_the_same_by_p4runtime_thrift_and_interfaces(tmp_path: Path) -> None:
    """The stand-ins for p4c and simple_switch_grpc are driven as those would be. Frames are those with tags, which
    Linux takes off on their way; registers are read by simple_switch_CLI."""
    stand_ins = tmp_path / "bin"
    write_shims(stand_ins)
    environment = {**os.environ, "PATH": f"{stand_ins}:{os.environ['PATH']}"}
    for name in ("GRADBED_P4C", "GRADBED_BMV2"):
        environment.pop(name, None)
    like, path = first("interconnect.12", 130, tmp_path), tmp_path / "again.json.gz"
    source = tmp_path / "source"
    for name, text in recording("interconnect.12").sources.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    command = [sys.executable, "-m", "tools.recordings", str(source / "p4src" / "interconnect.p4")]
    ended = subprocess.run(
        [*command, "--like", str(like), "-o", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    again = read_recording(path)
    assert "gradbed" in again.compiler and "gradbed" in again.switch
    arrived = [frame for frame in read_recording(like).frames if not ends_in_tag(bytes.fromhex(frame.sent))]
    assert any(frame.out != other.out for frame, other in zip(again.frames, arrived, strict=True))  # the tags
    untagged = [
        {port: [without_tag(bytes.fromhex(each)).hex() for each in frames] for port, frames in frame.out.items()}
        for frame in again.frames
    ]
    assert untagged == [frame.out for frame in arrived]
    assert any(again.state.values())
    assert replayed(again) == []


def test_all_recordings_can_be_taken_as_patterns() -> None:
    for name in PATHS:
        assert len(recording(name).entities()) == len(recording(name).inserted)
