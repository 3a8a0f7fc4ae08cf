"""What a switch did with a program, recorded frame by frame, and the same again on this switch."""

from tools.recordings.recording import Recording, read_recording, write_recording
from tools.recordings.replay import compile_recorded, replay

__all__ = ["Recording", "compile_recorded", "read_recording", "replay", "write_recording"]
