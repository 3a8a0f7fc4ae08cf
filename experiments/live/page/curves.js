// How the work gets on: bars of what is done, and what agents tell of their rounds.

import uPlot from "./vendor/uPlot.esm.js";
import { byId, colour, make } from "./dom.js";

const NAMES = {
  loss: "training loss", mean_loss: "mean training loss", accuracy: "accuracy", seconds: "round time (ms)",
};
const COLOURS = ["accent", "middle", "chosen", "high", "low", "switch"];

export class Curves {
  constructor() {
    this.plots = new Map();
    this.drawn = "";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.begin());
  }

  begin() {
    for (const { plot } of this.plots.values()) plot.destroy();
    this.plots.clear();
    byId("plots").replaceChildren();
    byId("bars").replaceChildren();
    this.drawn = "";
  }

  /** All up to a time. */
  show(store, t_us) {
    this.#bars(store, t_us);
    const key = `${store.told}|${t_us}`;
    if (key === this.drawn) return;
    this.drawn = key;
    for (const [name, series] of store.values) {
      const { labels, data } = columns(series, t_us, name === "seconds" ? 1e3 : 1);
      const known = this.plots.get(name);
      if (known && known.labels === labels.join()) known.plot.setData(data);
      else this.#make(name, labels, data);
    }
  }

  #bars(store, t_us) {
    // A phase's bars go on to stand when the next one begins.
    const newest = new Map();
    for (const row of store.progress) if (row.t_us <= t_us) for (const bar of row.bars) newest.set(bar[0], bar);
    byId("bars").replaceChildren(...[...newest.values()].map(([label, done, total, note]) =>
      make("div", { class: "bar" }, make("span", {}, label),
        make("progress", { max: total, value: done }), make("span", {}, `${done}/${total} ${note}`))));
  }

  #make(name, labels, data) {
    this.plots.get(name)?.plot.destroy();
    const box = byId("plots");
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    const plot = new uPlot({
      title: NAMES[name] ?? name, width: Math.max(240, box.clientWidth), height: 150,
      scales: { x: { time: false } }, axes: [{ ...axis, size: 28, incrs: [1, 2, 5, 10, 20, 50, 100, 500, 1000, 5000] }, { ...axis, size: 46 }],
      series: [{ label: "round" }, ...labels.map((label, i) =>
        ({ label, stroke: colour(COLOURS[i % COLOURS.length]), width: 1.6, spanGaps: true, points: { show: (plot) => plot.data[0].length < 20, size: 5 } }))],
    }, data, box);
    this.plots.set(name, { plot, labels: labels.join() });
  }

  resize() {
    for (const { plot } of this.plots.values()) {
      plot.setSize({ width: Math.max(240, byId("plots").clientWidth), height: 150 });
    }
  }
}

/** Rounds from 1, and a mean over agents for each series. */
function columns(series, t_us, factor) {
  const labels = [...series.keys()];
  const rounds = new Set();
  for (const of of series.values()) for (const [round, told] of of) if (told.t_us <= t_us) rounds.add(round);
  const x = [...rounds].sort((a, b) => a - b);
  const ys = labels.map((label) => x.map((round) => {
    const told = series.get(label).get(round);
    return told && told.t_us <= t_us ? factor * told.sum / told.count : null;
  }));
  return { labels, data: [x.map((round) => round + 1), ...ys] };
}

/** The load of both directions of a link over time. */
export function loadPlot(store, link, box) {
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
  const { a, b } = store.begin.links[link];
  return new uPlot({
    title: "load in % over ms", width: Math.max(240, box.clientWidth), height: 130,
    scales: { x: { time: false }, y: { range: [0, 100] } }, axes: [{ ...axis, size: 28 }, { ...axis, size: 40 }],
    series: [{ label: "ms" }, { label: `${a} to ${b}`, stroke: colour("accent"), width: 1.4, points: { show: false } },
      { label: `${b} to ${a}`, stroke: colour("middle"), width: 1.4, points: { show: false } }],
  }, loads(store, link), box);
}

export function loads(store, link) {
  const frames = store.frames.map((_, i) => i);
  return [
    frames.map((i) => store.frames[i].t_us / 1e3),
    ...[0, 1].map((back) => frames.map((i) => 100 * (store.direction(2 * link + back, i).load ?? 0))),
  ];
}
