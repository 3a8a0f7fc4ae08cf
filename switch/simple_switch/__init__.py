"""BMv2's simple_switch and simple_switch_grpc: their command lines on our switch, one switch in one process."""

from gradbed.switch.simple_switch.commands import simple_switch, simple_switch_grpc

__all__ = ["simple_switch", "simple_switch_grpc"]
