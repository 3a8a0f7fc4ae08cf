// The network: nodes at their places, each direction of a link with its load and what waits for it.

import cytoscape from "./vendor/cytoscape.esm.min.js";
import { colour } from "./dom.js";

const ROOM = 46;

export class Graph {
  /** choose: called with {switch} or {link} that was clicked, or {} beside them. */
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;
    this.cy = null;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.cy?.style(style());
      this.shown = null;
    });
  }

  begin(begin) {
    this.cy?.destroy();
    const width = ROOM * Math.max(12, longestRow(begin.nodes), 1.9 * Math.sqrt(begin.nodes.length));
    const height = 0.72 * width;
    this.cy = cytoscape({
      container: this.element,
      elements: [
        ...begin.nodes.map((node) => ({
          data: { id: node.name, kind: node.tier === null ? "host" : "switch" },
          position: { x: node.x * width, y: node.y * height },
        })),
        ...begin.links.flatMap((link, i) => [[link.a, link.b, 2 * i], [link.b, link.a, 2 * i + 1]])
          .map(([source, target, direction]) => ({
            data: { id: `d${direction}`, source, target, direction, load: 0, queue: "" },
          })),
      ],
      layout: { name: "preset", padding: 24 },
      style: style(),
      autoungrabify: true,
      boxSelectionEnabled: false,
    });
    this.cy.on("tap", (event) => {
      const data = event.target === this.cy ? {} : event.target.data();
      if (data.direction !== undefined) this.choose({ link: data.direction >> 1 });
      else if (data.kind === "switch") this.choose({ switch: data.id });
      else if (event.target === this.cy) this.choose({});
    });
    this.shown = null;
    new ResizeObserver(() => { this.cy?.resize(); this.cy?.fit(undefined, 24); }).observe(this.element);
  }

  /** Where a node is drawn, in pixels of the element. */
  placeOf(name) {
    return this.cy.getElementById(name).renderedPosition();
  }

  /** Mark what is chosen. */
  mark({ switch: name, link }) {
    this.cy.elements().removeClass("chosen");
    if (name !== undefined) this.cy.getElementById(name).addClass("chosen");
    if (link !== undefined) {
      this.cy.getElementById(`d${2 * link}`).addClass("chosen");
      this.cy.getElementById(`d${2 * link + 1}`).addClass("chosen");
    }
  }

  show(store, frame) {
    const now = [];
    this.cy.batch(() => {
      for (let number = 0; number < 2 * store.begin.links.length; number += 1) {
        const { load, queued, bps } = store.direction(number, frame);
        // Without a rate there is no load: a link that carries something is just not idle.
        const shade = Math.round(50 * (load ?? (bps > 0 ? 0.15 : 0)));
        const queue = queued > 0 ? String(queued) : "";
        now.push(`${shade}|${queue}`);
        if (this.shown?.[number] !== now[number]) {
          const edge = this.cy.getElementById(`d${number}`);
          edge.data({ load: shade / 50, queue });
        }
      }
    });
    this.shown = now;
  }
}

/** How many nodes stand at one height, at most. */
function longestRow(nodes) {
  const rows = new Map();
  for (const { y } of nodes) rows.set(y.toFixed(3), (rows.get(y.toFixed(3)) ?? 0) + 1);
  return Math.max(...rows.values());
}

function style() {
  const [idle, low, middle, high, ink, card] = ["idle", "low", "middle", "high", "ink", "card"].map(colour);
  const mono = { "font-family": "system-ui, DejaVu Sans, sans-serif" };
  return [
    { selector: "node", style: {
      ...mono, label: "data(id)", "font-size": 13, color: ink, "text-valign": "center", "text-halign": "center",
      width: 34, height: 34, "border-width": 1.5, "border-color": colour("switch"), "background-color": card } },
    { selector: 'node[kind = "host"]', style: {
      shape: "round-rectangle", width: 34, height: 22, "font-size": 11, "border-color": colour("host") } },
    { selector: "edge", style: {
      ...mono, "curve-style": "unbundled-bezier", "control-point-distances": 9, "control-point-weights": 0.5,
      width: "mapData(load, 0, 1, 1.6, 7)", "line-color": idle, "font-size": 10, color: "#1c2733",
      "source-label": "data(queue)", "source-text-offset": 30, "text-background-color": middle,
      "text-background-opacity": 1, "text-background-padding": 1.5, "text-background-shape": "round-rectangle" } },
    { selector: "edge[load > 0]", style: { "line-color": `mapData(load, 0, 0.15, ${idle}, ${low})` } },
    { selector: "edge[load > 0.15]", style: { "line-color": `mapData(load, 0.15, 0.6, ${low}, ${middle})` } },
    { selector: "edge[load > 0.6]", style: { "line-color": `mapData(load, 0.6, 1, ${middle}, ${high})` } },
    { selector: "edge[queue = '']", style: { "source-label": "" } },
    { selector: "node.chosen", style: { "border-width": 4, "border-color": colour("chosen") } },
    { selector: "edge.chosen", style: {
      "underlay-color": colour("chosen"), "underlay-opacity": 0.45, "underlay-padding": 4 } },
  ];
}
