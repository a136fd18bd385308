// The run in one look: its state, how far it is, and the figures that a person asks for first.
import type { RunNumbers } from "../../page-messages.ts";
import type { Desk } from "../desk.ts";
import { button, make, setAttribute, setHidden, setText } from "../dom.ts";
import { countOf, countText, percentText, rateText, roughDuration } from "../known/phrases.ts";

const PARTS = [
  ["done", "done"],
  ["failed", "failed"],
  ["running", "with workers"],
  ["delayed", "delayed"],
  ["pending", "pending"],
] as const;

const STATE_WORDS: Readonly<Record<string, string>> = {
  open: "Open: more items may come",
  sealed: "Running, and sealed: no more items come",
  paused: "Paused",
  complete: "Complete",
  cancelled: "Cancelled",
};

export class Summary {
  readonly element: HTMLElement;
  readonly #state = make("p", { class: "state" });
  readonly #task = make("p", { class: "quiet" });
  readonly #bar = make("div", { class: "progress", role: "img" });
  readonly #parts = PARTS.map(([name]) => make("span", { class: `part ${name}` }));
  readonly #tiles = make("dl", { class: "tiles" });
  readonly #values = new Map<string, { readonly value: HTMLElement; readonly note: HTMLElement }>();
  readonly #deeds: Readonly<Record<"pause" | "resume" | "retry" | "cancel", HTMLButtonElement>>;

  constructor(desk: Desk) {
    this.#bar.append(...this.#parts);
    for (const name of ["Done", "Failed", "With workers", "Waiting", "Rate", "Left", "Workers"])
      this.#tile(name);
    this.#deeds = {
      pause: button("Pause", () => desk.ask({ deed: "pause" })),
      resume: button("Resume", () => desk.ask({ deed: "resume" }), { class: "primary" }),
      retry: button("Retry failed", () => desk.ask({ deed: "retry" })),
      cancel: button("Cancel run", () => desk.ask({ deed: "cancel" }), { class: "grave" }),
    };
    const deeds = make("div", { class: "deeds", role: "group", "aria-label": "The run" });
    deeds.append(...Object.values(this.#deeds));
    const top = make("div", { class: "summary-top" }, make("div", {}, this.#state, this.#task), deeds);
    this.element = make(
      "section",
      { class: "card summary", "aria-label": "The run" },
      top,
      this.#bar,
      this.#tiles,
    );
  }

  /** `perSecond`: of the last while. */
  show(status: RunNumbers, perSecond: number): void {
    const { done, failed, running, executing, pending, delayed, set_aside, workers } = status;
    const total = pending + delayed + running + done + failed + set_aside;
    const isOver = status.state === "complete" || status.state === "cancelled";
    this.#words(status);
    for (const [at, [name]] of PARTS.entries()) {
      const part = this.#parts[at];
      const share = total === 0 ? 0 : (status[name] / total) * 100;
      if (part !== undefined) part.style.inlineSize = `${Math.round(share * 100) / 100}%`;
    }
    const described = PARTS.map(([name, label]) => `${countText(status[name])} ${label}`).join(", ");
    setAttribute(this.#bar, "aria-label", `Of ${countOf(total, "item")}: ${described}`);
    const waiting = pending + delayed;
    const left = waiting + running;
    this.#put("Done", countText(done), `${percentText(done, total)} of ${countText(total)}`);
    this.#put(
      "Failed",
      countText(failed),
      set_aside === 0 ? percentText(failed, total) : `${countText(set_aside)} set aside`,
      failed > 0,
    );
    this.#put("With workers", countText(running), `${countText(executing)} executing`);
    this.#put(
      "Waiting",
      countText(waiting),
      delayed === 0 ? "" : `${countText(delayed)} delayed after a failure`,
    );
    this.#put("Rate", isOver ? "–" : `${rateText(perSecond)}/s`, "items that became final");
    const isMoving = !isOver && status.state !== "paused" && perSecond > 0 && left > 0;
    this.#put(
      "Left",
      isMoving ? `≈ ${roughDuration((left / perSecond) * 1_000)}` : "–",
      isMoving ? "at this rate" : "",
    );
    const others = (["failed", "suspected", "cordoned", "draining", "revoked"] as const).filter(
      (word) => workers[word] > 0,
    );
    const notes = others.map((word) => `${countText(workers[word])} ${word}`).join(", ");
    this.#put(
      "Workers",
      countText(workers.ready),
      notes === "" ? "ready" : `ready; ${notes}`,
      workers.failed > 0,
    );
  }

  #words(status: RunNumbers): void {
    const { state, pause_reason, plugin, task, failed } = status;
    const reason =
      state === "paused" && pause_reason !== null && pause_reason !== "" ? `: ${pause_reason}` : "";
    setText(this.#state, `${STATE_WORDS[state] ?? state}${reason}`);
    setAttribute(this.#state, "data-state-word", state);
    setText(this.#task, [plugin, task].filter((words) => words !== null && words !== "").join(" · "));
    const isOver = state === "complete" || state === "cancelled";
    setHidden(this.#deeds.pause, isOver || state === "paused");
    setHidden(this.#deeds.resume, state !== "paused");
    setHidden(this.#deeds.retry, failed === 0 || state === "cancelled");
    setHidden(this.#deeds.cancel, isOver);
  }

  #tile(name: string): void {
    const value = make("span", { class: "value" }, "–");
    const note = make("span", { class: "note" });
    this.#tiles.append(make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, value, note)));
    this.#values.set(name, { value, note });
  }

  #put(name: string, value: string, note: string, isAlarming = false): void {
    const tile = this.#values.get(name);
    if (tile === undefined) return;
    setText(tile.value, value);
    setText(tile.note, note);
    setAttribute(tile.value, "data-alarming", isAlarming && name !== "Workers");
    setAttribute(tile.note, "data-alarming", isAlarming);
  }
}
