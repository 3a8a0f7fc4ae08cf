"""A switch with three hosts and a controller, which is this check."""

from __future__ import annotations

from gradbed.experiments.exercises.bench import Bench, Refusal, ethernet

PORTS = (1, 2, 3)
ADDRESS = 0x020000000000


class Controller:
    """Does what the task says for each digest."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.port_of: dict[int, int] = {}

    def work(self) -> None:
        told, self.bench.digests[:] = list(self.bench.digests), []
        for address, port in dict.fromkeys(told):
            name = f"h{address:x}"
            if address in self.port_of:
                self.bench.do(f"remove {name}\nremove s{name}")
            self.bench.do(f"add hosts hdr.ethernet.dst_addr:{address:#x} forward(port:{port}) = {name}")
            key = f"hdr.ethernet.src_addr:{address:#x} std.ingress_port:{port}"
            self.bench.do(f"add senders {key} NoAction() = s{name}")
            self.port_of[address] = port


def check(bench: Bench) -> None:
    bench.do("mc_mgrp_create 1\nmc_node_create 0 1 2 3\nmc_node_associate 1 0")
    controller = Controller(bench)

    def send(about: str, port: int, dst: int, src: int, *out: int, told: bool) -> None:
        bench.digests.clear()
        frame = ethernet(dst, src, 0x0800, about.encode()[:4])
        bench.expect(about, port, frame, *[(each, frame) for each in out])
        wanted: list[tuple[int, ...]] = [(ADDRESS | src, port)] if told else []
        if bench.digests != wanted:
            raise Refusal(f"{about}: what the controller is told", words(wanted), words(bench.digests))

    send("h1 at port 1 is not known, nor is h2: flooded, and the controller is told of h1", 1, 2, 1, 2, 3, told=True)
    send("h1 sends again before the controller has acted: the same", 1, 2, 1, 2, 3, told=True)
    controller.work()
    send("h1 is known now, h2 is not: flooded, and nobody is told of", 1, 2, 1, 2, 3, told=False)
    send("h2 at port 2 answers h1: by port 1 alone, and the controller is told of h2", 2, 1, 2, 1, told=True)
    controller.work()
    send("h1 and h2 are known: by port 2 alone", 1, 2, 1, 2, told=False)
    send("h2 and h1 are known: by port 1 alone", 2, 1, 2, 1, told=False)
    send("h1 has moved to port 3: the controller is told", 3, 2, 1, 2, told=True)
    controller.work()
    send("h2 answers h1, which has moved: by port 3 alone", 2, 1, 2, 3, told=False)
    send("for h1 comes a packet by the port at which h1 is: nothing goes back", 3, 1, 5, told=True)


def words(digests: list[tuple[int, ...]]) -> str:
    return ", ".join(f"address {address:012x} at port {port}" for address, port in digests) or "nothing"
