// All that the page knows: what the rows have told, bounded in size. Times are in nominal microseconds.

const FRAME_BYTES = 24e6;
const MOST_FRAMES = 4000;
const MOST_EVENTS = 2000;
const MOST_OF_SWITCH = 200;
const MOST_PACKETS = 400;

/** Of a direction in a frame: packets, bytes, queue_drops, queued (NaN: nobody tells). */
export const FIELDS = 4;

export class Store {
  constructor() {
    this.begin = null;
    this.frames = [];
    this.events = [];
    this.phases = [];
    this.progress = [];
    this.values = new Map();
    this.plans = new Map();
    this.switches = new Map();
    this.packets = new Map();
    this.clock = null;
    this.ended = false;
    this.last_us = 0;
    this.told = 0;
  }

  take(row) {
    this.told += 1;
    this.last_us = Math.max(this.last_us, row.t_us ?? 0);
    const takers = {
      begin: () => { this.begin = row; this.state = new Float64Array(2 * FIELDS * row.links.length); },
      frame: () => this.#frame(row),
      phase: () => {
        this.phases.push(row);
        this.#event(row, `${row.name} ${row.begins ? "begins" : "has ended"}`, "note");
      },
      progress: () => { this.progress.push(row); thin(this.progress, 2000); },
      value: () => this.#value(row),
      event: () => this.#event(row, row.text, row.level),
      plan: () => keep(this.plans, row.switch, row, MOST_OF_SWITCH),
      switch: () => keep(this.switches, row.switch, row, MOST_OF_SWITCH),
      packets: () => this.#packets(row),
      clock: () => { this.clock = row; },
      end: () => { this.ended = true; },
    };
    takers[row.kind]?.();
  }

  #frame(row) {
    for (const [direction, numbers] of Object.entries(row.links)) {
      numbers.forEach((number, i) => { this.state[FIELDS * direction + i] = number ?? NaN; });
    }
    this.frames.push({ t_us: row.t_us, state: this.state.slice() });
    const most = Math.min(MOST_FRAMES, Math.max(50, Math.floor(FRAME_BYTES / (8 * this.state.length))));
    thin(this.frames, most);
  }

  #value(row) {
    const series = `${row.phase}${row.job > 1 ? `, job ${row.job}` : ""}`;
    const plot = getOrMake(this.values, row.name, () => new Map());
    const rounds = getOrMake(plot, series, () => new Map());
    const round = getOrMake(rounds, row.round, () => ({ t_us: row.t_us, sum: 0, count: 0 }));
    round.sum += row.value;
    round.count += 1;
  }

  #event(row, text, level) {
    this.events.push({ t_us: row.t_us, text, level });
    if (this.events.length > MOST_EVENTS) this.events.splice(0, MOST_EVENTS / 2);
  }

  #packets(row) {
    const kept = getOrMake(this.packets, row.link, () => []);
    kept.push(...row.packets);
    if (kept.length > MOST_PACKETS) kept.splice(0, kept.length - MOST_PACKETS / 2);
  }

  /** The number of the last frame that is not later; -1 before the first. */
  frameAt(t_us) {
    let low = 0, high = this.frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle].t_us <= t_us) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** What directions carried up to a frame: {load, bps, queued, packets, bytes, drops}; load null: the link has no
   *  rate, or time stood still. */
  direction(number, frame) {
    const link = this.begin.links[number >> 1];
    const now = this.frames[frame], at = FIELDS * number;
    if (!now) return { load: null, bps: 0, queued: 0, packets: 0, bytes: 0, drops: 0 };
    const before = this.frames[this.#before(frame)];
    const passed_us = before ? now.t_us - before.t_us : 0;
    const bits = before ? 8 * (now.state[at + 1] - before.state[at + 1]) : 0;
    const bps = passed_us > 0 ? 1e6 * bits / passed_us : 0;
    return {
      load: link.rate_bps && passed_us > 0 ? Math.min(1, bps / link.rate_bps) : null, bps,
      queued: now.state[at + 3], packets: now.state[at], bytes: now.state[at + 1], drops: now.state[at + 2],
    };
  }

  /** The frame that loads are counted from: several packets of the slowest link earlier, at least one frame. */
  #before(frame) {
    this.window_us ??= 20 * 12000e6 / Math.min(...this.begin.links.map((link) => link.rate_bps || 1e10));
    let found = frame - 1;
    while (found > 0 && this.frames[frame].t_us - this.frames[found].t_us < this.window_us) found -= 1;
    return found;
  }
}

/** The last row that is not later than a time, or else the first. */
export function latest(rows, t_us) {
  if (!rows || !rows.length) return null;
  let found = rows[0];
  for (const row of rows) if (row.t_us <= t_us) found = row;
  return found;
}

function getOrMake(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function keep(map, key, row, most) {
  const rows = getOrMake(map, key, () => []);
  rows.push(row);
  thin(rows, most);
}

/** Every second one goes when there are too many; the newest stays. */
function thin(rows, most) {
  if (rows.length <= most) return;
  const kept = rows.filter((_, i) => i % 2 === 0 || i === rows.length - 1);
  rows.length = 0;
  for (const row of kept) rows.push(row);
}
