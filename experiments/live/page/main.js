// Takes the rows of the stream in, and draws what has changed, ten times a second at most.

import { Controls } from "./controls.js";
import { Curves } from "./curves.js";
import { byId, make, post, timeText } from "./dom.js";
import { Graph } from "./graph.js";
import { LinkPanel } from "./packets.js";
import { Store } from "./store.js";
import { SwitchPanel } from "./tables.js";

const DRAW_MS = 100;

let store = new Store();
let isLive = false;
let chosen = {};
let waits = false;

const graph = new Graph(byId("graph"), choose);
const curves = new Curves();
const switchPanel = new SwitchPanel(byId("detail"));
const linkPanel = new LinkPanel(byId("detail"));
const controls = new Controls(() => draw());
const hint = byId("detail").innerHTML;

const stream = new EventSource("stream");
stream.addEventListener("begin", (event) => {
  const head = JSON.parse(event.data);
  isLive = head.live;
  store = new Store();
  chosen = {};
  offer(head);
});
stream.addEventListener("message", (event) => {
  for (const row of JSON.parse(event.data)) {
    store.take(row);
    if (row.kind === "begin") begin();
  }
  later();
});
stream.addEventListener("error", () => {
  byId("state").textContent = "gradbed has ended";
  store.ended = true;
});
addEventListener("resize", () => curves.resize());
// For those who look into the page from outside: its tests, and the console.
window.gradbed = { store: () => store, graph, choose, draw: () => draw() };

function begin() {
  byId("title").textContent = store.begin.title;
  document.title = `${store.begin.title} - gradbed`;
  graph.begin(store.begin);
  curves.begin();
  controls.begin(store, isLive);
  linkPanel.forget();
  switchPanel.forget();
  choose({});
}

function offer({ names, chosen: number }) {
  byId("recordings").hidden = names.length < 2;
  byId("recording").replaceChildren(...names.map((name, i) => make("option", { value: i }, `${i + 1}: ${name}`)));
  byId("recording").value = number;
  byId("recording").onchange = (event) => post(`choose/${event.target.value}`);
}

function choose(what) {
  chosen = what;
  switchPanel.forget();
  linkPanel.forget();
  graph.mark(what);
  if (what.switch === undefined && what.link === undefined) byId("detail").innerHTML = hint;
  if (isLive) post("watch", { switch: what.switch ?? null, link: what.link ?? null }).catch(() => {});
  later();
}

function later() {
  if (waits) return;
  waits = true;
  setTimeout(() => { waits = false; draw(); }, DRAW_MS);
}

function draw() {
  if (!store.begin) return;
  const t_us = controls.now();
  graph.show(store, store.frameAt(t_us));
  curves.show(store, t_us);
  controls.show();
  if (chosen.switch !== undefined) switchPanel.show(store, chosen.switch, t_us);
  if (chosen.link !== undefined) linkPanel.show(store, chosen.link, t_us, isLive && !store.ended);
  events(t_us);
}

function events(t_us) {
  const shown = store.events.filter((event) => event.t_us <= t_us).slice(-100).reverse();
  const key = `${shown.length}|${shown[0]?.t_us}|${shown[0]?.text}`;
  if (byId("events").dataset.key === key) return;
  byId("events").dataset.key = key;
  byId("events").replaceChildren(...shown.map(({ t_us: at, text, level }) =>
    make("li", { class: level }, make("time", {}, timeText(at)), text)));
}
