"""The agents of a flow: one sends at a constant rate, the other counts."""

from __future__ import annotations

import numpy as np

from gradbed.plugin import (
    AgentAddress,
    AgentConfig,
    AgentContext,
    frame_type,
    ip_integer,
    mac_array,
    pack_datagrams,
    well_formed_datagrams,
)
from tiny.ports import FLOW, UDP_PORT

PAYLOAD_BYTES = 1000
FRAME = frame_type(FLOW, ("rest", "u1", PAYLOAD_BYTES - FLOW.size_bytes))


class FlowConfig(AgentConfig):
    """interval_us: between two packets."""

    sender: AgentAddress
    receiver: AgentAddress
    packets: int
    interval_us: int


def sender(context: AgentContext, flow: FlowConfig) -> None:
    with context.open(udp_port=UDP_PORT) as interface:
        context.emit("ready")
        if not context.wait_for_begin():
            return
        frames = pack_datagrams(
            FLOW,
            FRAME,
            flow.packets,
            src_mac=mac_array(flow.sender.mac),
            dst_mac=mac_array(flow.sender.gateway_mac),
            src_ip=ip_integer(flow.sender.ip),
            dst_ip=ip_integer(flow.receiver.ip),
            number=np.arange(flow.packets),
            rest=0,
        )
        sent = 0
        next_us = context.now_us()
        for number in range(flow.packets):
            while not context.stopped and context.now_us() < next_us:
                context.wait(next_us)
            sent += interface.send(frames[number : number + 1])
            next_us += flow.interval_us
        context.emit("sent")
        while not context.stopped:
            context.wait()
        context.emit("final", statistics={"packets": sent})


def receiver(context: AgentContext, flow: FlowConfig) -> None:
    with context.open(udp_port=UDP_PORT) as interface:
        context.emit("ready")
        numbers: list[int] = []
        times_us: list[int] = []
        while True:
            buffer, lengths = interface.receive()
            found = well_formed_datagrams(FLOW, FRAME, buffer, lengths)["number"]
            numbers += found.tolist()
            times_us += [context.now_us()] * len(found)
            if not len(lengths):
                if context.stopped:
                    break
                context.wait()
        taken_us = times_us[-1] - times_us[0] if times_us else 0
        context.emit(
            "final", statistics={"packets": len(numbers), "different": len(set(numbers)), "taken_us": taken_us}
        )
