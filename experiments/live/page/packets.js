// A link: what it carries, its last packets, their headers, and what the next switch does to one.

import { make, post, rateText, table, timeText } from "./dom.js";
import { loadPlot, loads } from "./curves.js";

const MOST_SHOWN = 40;

export class LinkPanel {
  constructor(box) {
    this.box = box;
  }

  show(store, number, t_us, isLive) {
    const link = store.begin.links[number];
    if (this.number !== number || this.store !== store) {
      this.#make(store, number, link);
    }
    const frame = store.frameAt(t_us);
    const rows = [[link.a, link.b, 2 * number], [link.b, link.a, 2 * number + 1]].map(([from, to, direction]) => {
      const { load, bps, queued, packets, drops } = store.direction(direction, frame);
      return [`${from} to ${to}`, load === null ? "-" : `${(100 * load).toFixed(0)} %`, rateText(bps), packets,
        Number.isNaN(queued) ? "?" : queued, drops];
    });
    this.numbers.replaceChildren(table(["", "load", "rate", "packets", "waiting", "dropped"], rows));
    if (this.told !== store.frames.length) {
      this.told = store.frames.length;
      this.plot.setData(loads(store, number));
    }
    this.#packets(store, number, link, t_us, isLive);
  }

  #make(store, number, link) {
    this.store = store;
    this.number = number;
    this.told = this.listed = -1;
    this.numbers = make("div");
    this.chart = make("div");
    this.list = make("div");
    this.packet = make("div", { id: "packet" });
    const words = [link.rate_bps ? rateText(link.rate_bps) : "no limit of rate", `delay ${timeText(link.delay_us)}`,
      `queue of ${link.queue_packets} packets`];
    this.box.replaceChildren(make("h2", {}, `${link.a} - ${link.b}: ${words.join(", ")}`), this.numbers, this.chart,
      this.list, this.packet);
    this.plot?.destroy();
    this.plot = loadPlot(store, number, this.chart);
  }

  #packets(store, number, link, t_us, isLive) {
    const known = (store.packets.get(number) ?? []).filter((packet) => packet.t_us <= t_us);
    const key = `${known.length}|${known.at(-1)?.t_us}`;
    if (key === this.listed) return;
    this.listed = key;
    if (!known.length) {
      this.list.replaceChildren(make("p", { class: "hint" }, isLive
        ? "Packets are listed from now on, as they pass."
        : "No packets were recorded: they are of links that were clicked while the network ran."));
      return;
    }
    const shown = known.slice(-MOST_SHOWN).reverse();
    this.list.replaceChildren(make("h3", {}, `last packets (${shown.length} of ${known.length})`),
      table(["time", "from", "bytes", ""], shown.map((packet) => make("tr", {
        class: "clickable", tabindex: 0, click: () => this.#open(store, link, packet),
        keydown: (event) => { if (event.key === "Enter") this.#open(store, link, packet); },
      }, make("td", {}, timeText(packet.t_us)), make("td", {}, packet.from),
      make("td", { class: "number" }, String(packet.length)), make("td", {}, summary(packet.frame))))));
  }

  async #open(store, link, packet) {
    const to = packet.from === link.a ? link.b : link.a;
    const port = packet.from === link.a ? link.b_port : link.a_port;
    this.packet.replaceChildren(make("p", { class: "hint" }, "..."));
    try {
      const layers = await post("layers", { frame: packet.frame });
      const trace = store.begin.programs[to]
        ? make("button", { id: "trace", click: () => this.#trace(to, port, packet) }, `trace at ${to}`) : null;
      this.packet.replaceChildren(make("h3", {}, `packet of ${timeText(packet.t_us)}`), trace ?? "",
        make("div", { id: "trace-text" }),
        ...layers.flatMap(({ name, fields }) => [make("h3", {}, name), table(["field", "value"], fields)]));
    } catch (error) {
      this.packet.replaceChildren(make("p", { class: "hint" }, error.message));
    }
    this.packet.scrollIntoView({ block: "nearest" });
  }

  async #trace(to, port, packet) {
    const box = this.packet.querySelector("#trace-text");
    box.replaceChildren(make("p", { class: "hint" }, "the program is being built for it ..."));
    try {
      const { text } = await post("trace", { switch: to, port, frame: packet.frame });
      box.replaceChildren(make("pre", {}, text));
    } catch (error) {
      box.replaceChildren(make("p", { class: "hint" }, error.message));
    }
  }

  forget() {
    this.number = null;
  }
}

/** Protocol, addresses and ports of a frame in hexadecimal. */
function summary(frame) {
  const byte = (at) => parseInt(frame.slice(2 * at, 2 * at + 2), 16);
  const type = 256 * byte(12) + byte(13);
  if (type !== 0x0800 || frame.length < 2 * 38) return `EtherType 0x${type.toString(16).padStart(4, "0")}`;
  const address = (at) => [0, 1, 2, 3].map((i) => byte(at + i)).join(".");
  const ports = 14 + 4 * (byte(14) & 15);
  const protocol = { 1: "ICMP", 6: "TCP", 17: "UDP" }[byte(23)] ?? `protocol ${byte(23)}`;
  const to = [6, 17].includes(byte(23)) ? ` port ${256 * byte(ports + 2) + byte(ports + 3)}` : "";
  return `${protocol} ${address(26)} > ${address(30)}${to}`;
}
