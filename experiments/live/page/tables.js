// What a switch holds: tables of the plan, registers and counters as they were read last.

import { make, table, timeText } from "./dom.js";
import { latest } from "./store.js";

const MOST_ENTRIES = 200;
// Cells of a register array (experiments/live/contents.py).
const LARGEST = 65536;

export class SwitchPanel {
  constructor(box) {
    this.box = box;
    this.tab = "tables";
  }

  show(store, name, t_us) {
    const plan = latest(store.plans.get(name), t_us);
    const read = latest(store.switches.get(name), t_us);
    const key = [name, this.tab, plan?.t_us, read?.t_us].join();
    if (key === this.shown) return;
    this.shown = key;
    const parts = { tables: () => tables(plan), registers: () => registers(read), counters: () => counters(read) };
    const node = store.begin.nodes.find((each) => each.name === name);
    const tabs = Object.keys(parts).map((tab) => make("button", {
      "aria-pressed": String(tab === this.tab), "data-tab": tab,
      click: () => { this.tab = tab; this.show(store, name, t_us); },
    }, tab));
    this.box.replaceChildren(
      make("h2", {}, `${name}: ${node.tier} switch ${node.number ?? ""}, program ${
        store.begin.programs[name]?.name ?? "of Open vSwitch"}`),
      make("div", { class: "tabs" }, ...tabs), ...parts[this.tab]());
  }

  forget() {
    this.shown = null;
  }
}

function hint(text) {
  return make("p", { class: "hint" }, text);
}

function tables(row) {
  if (!row) return [hint("No plan was told yet.")];
  const { entries = [], flows = [], groups = [] } = row.plan;
  const found = [hint(`By the plan in force since ${timeText(row.t_us)}.`)];
  for (const [name, group] of grouped(entries)) {
    found.push(make("h3", {}, `${name} (${group.length})`), table(["match", "action", "parameters"],
      group.slice(0, MOST_ENTRIES).map((e) => [pairs(e.match, e.table), e.action, pairs(e.params ?? {})])));
    if (group.length > MOST_ENTRIES) found.push(hint(`and ${group.length - MOST_ENTRIES} more`));
  }
  if (groups.length) {
    found.push(make("h3", {}, `multicast groups (${groups.length})`), table(["group", "ports"],
      groups.map((g) => [g.group ?? g.id ?? g.group_id ?? "", JSON.stringify(g.replicas ?? g.ports ?? g)])));
  }
  if (flows.length) {
    found.push(make("h3", {}, `flows (${flows.length})`), table(["match", "actions"],
      flows.slice(0, MOST_ENTRIES).map((f) => [pairs(f.match ?? {}), JSON.stringify(f.actions)])));
  }
  return found.length > 1 ? found : [...found, hint("Its tables hold only what the program brings along.")];
}

function grouped(entries) {
  const found = new Map();
  for (const entry of entries) found.set(entry.table, [...(found.get(entry.table) ?? []), entry]);
  return found;
}

function pairs(values) {
  return Object.entries(values).map(([name, value]) => `${name.split(".").slice(-1)[0]}=${matchText(name, value)}`)
    .join(", ") || "-";
}

function matchText(name, value) {
  if (typeof value === "number") return isAddress(name) ? address(value) : isMac(name) ? mac(value) : String(value);
  if (value.prefix_bits !== undefined) {
    return `${isAddress(name) ? address(value.value) : value.value}/${value.prefix_bits}`;
  }
  if (value.mask !== undefined) return `${value.value} &&& ${value.mask}`;
  return value.low !== undefined ? `${value.low}..${value.high}` : JSON.stringify(value);
}

function isAddress(name) {
  return /(^|\.)(src_addr|dst_addr|srcAddr|dstAddr|.*_ip|ip)$/.test(name);
}

function address(value) {
  return [24, 16, 8, 0].map((shift) => (value / 2 ** shift) & 255).join(".");
}

function isMac(name) {
  return /(^|[._])mac(_addr)?$/.test(name);
}

function mac(value) {
  return value.toString(16).padStart(12, "0").match(/../g).join(":");
}

function registers(row) {
  if (!row) return [hint("Not read yet.")];
  const found = [hint(`Read at ${timeText(row.t_us)}; cells that are not zero.`)];
  for (const [name, { size, cells, used }] of Object.entries(row.registers)) {
    if (!cells) {
      found.push(make("h3", {}, `${name} (${size} cells)`), hint(size > LARGEST
        ? "Too large to be read while the network runs." : "Read while somebody looks at the switch."));
      continue;
    }
    found.push(make("h3", {}, `${name} (${used} of ${size} cells)`));
    if (cells.length) found.push(table(["index", "value"], cells.map(([i, v]) => [Number(i), v ?? "too large to tell"])));
    if (used > cells.length) found.push(hint(`and ${used - cells.length} more`));
  }
  return found.length > 1 ? found : [hint("Its program has no registers that were read.")];
}

function counters(row) {
  if (!row) return [hint("Not read yet.")];
  const found = [hint(`Read at ${timeText(row.t_us)}; cells that are not zero.`)];
  for (const [name, cells] of Object.entries(row.counters)) {
    found.push(make("h3", {}, name), table(["index", "packets", "bytes"],
      cells.map((cell) => [cell.index, cell.packets, cell.bytes])));
  }
  return found.length > 1 ? found : [...found, hint("Nothing was counted.")];
}
