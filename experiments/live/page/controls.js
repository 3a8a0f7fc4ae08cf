// Time: of the network's clock while it runs, and of what is shown.

import { byId, post, timeText } from "./dom.js";

const PLAY_S = 30;
const TICK_MS = 50;

export class Controls {
  /** onSeek: called when another time is to be shown. */
  constructor(onSeek) {
    this.onSeek = onSeek;
    this.follows = true;
    this.t_us = 0;
    this.timer = null;
    byId("time").addEventListener("input", (event) => {
      this.follows = false;
      this.stop();
      this.seek(this.store.last_us * event.target.value / 1000);
    });
    byId("follow").addEventListener("click", () => { this.follows = true; onSeek(); });
    byId("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    for (const name of ["run", "pause"]) {
      byId(name).addEventListener("click", () => post("control", { command: name }));
    }
    byId("step").addEventListener("click", () => {
      this.follows = true;
      post("control", { command: "step", step_us: Number(byId("step-us").value) });
    });
    byId("speed").addEventListener("change", (event) => {
      post("control", { command: "speed", speed: event.target.value === "" ? null : Number(event.target.value) });
    });
  }

  begin(store, isLive) {
    this.store = store;
    this.isLive = isLive;
    this.follows = isLive;
    this.t_us = 0;
    this.stop();
  }

  /** The time to show now. */
  now() {
    return this.follows ? this.store.last_us : Math.min(this.t_us, this.store.last_us);
  }

  seek(t_us) {
    this.t_us = t_us;
    this.onSeek();
  }

  play() {
    if (this.t_us >= this.store.last_us) this.t_us = 0;
    this.follows = false;
    this.timer = setInterval(() => {
      this.seek(Math.min(this.store.last_us, this.t_us + this.store.last_us * TICK_MS / 1000 / PLAY_S));
      if (this.t_us >= this.store.last_us) this.stop();
    }, TICK_MS);
    byId("play").textContent = "❚❚";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    byId("play").textContent = "▶";
  }

  show() {
    const { store } = this;
    const runs = this.isLive && !store.ended;
    byId("clock").hidden = !(runs && store.clock);
    byId("play").hidden = runs;
    byId("follow").hidden = !runs || this.follows;
    if (document.activeElement !== byId("time") || this.follows || this.timer) {
      byId("time").value = store.last_us ? 1000 * this.now() / store.last_us : 1000;
    }
    byId("now").textContent = timeText(this.now());
    if (store.clock) {
      byId("pause").setAttribute("aria-pressed", String(store.clock.paused));
      byId("run").setAttribute("aria-pressed", String(!store.clock.paused));
      if (document.activeElement !== byId("speed")) byId("speed").value = store.clock.speed ?? "";
    }
    const clock = store.begin.clock === "virtual" ? "virtual clock" : "real clock";
    const state = !runs ? (this.isLive ? "the run has ended" : "recording")
      : store.clock?.paused ? "paused" : "running";
    byId("state").textContent = `${clock}, ${state}`;
  }
}
