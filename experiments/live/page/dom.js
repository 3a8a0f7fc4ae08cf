// Small things that every part of the page uses.

/** An element with attributes, event handlers (functions) and children (elements or text). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** A table of rows of cells; numbers stand to the right. */
export function table(head, rows) {
  const cell = (tag, value) =>
    make(tag, { class: typeof value === "number" ? "number" : null },
      value instanceof Node ? value : typeof value === "number" ? value.toLocaleString("en") : String(value));
  const widths = rows[0] ?? [];
  return make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((name, i) =>
      make("th", { class: typeof widths[i] === "number" ? "number" : null }, name)))),
    make("tbody", {}, ...rows.map((row) => row instanceof Node ? row
      : make("tr", {}, ...row.map((value) => cell("td", value))))));
}

export function timeText(t_us) {
  if (t_us < 1e4) return `${t_us.toFixed(1)} us`;
  if (t_us < 1e7) return `${(t_us / 1e3).toFixed(3)} ms`;
  return `${(t_us / 1e6).toFixed(3)} s`;
}

export function rateText(bps) {
  for (const [unit, size] of [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3]]) {
    if (bps >= size) return `${(bps / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(bps)} bit/s`;
}

/** What the server answers to a request with a JSON body; an Error with its one line if it refuses. */
export async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}),
  });
  const content = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(content?.detail ?? answer.statusText);
  return content;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
