// One item: what `rollout explain` says of it, its chart, its attempts, and its retry.
import type { Explained } from "../../page-messages.ts";
import { table } from "../charts/chart-table.ts";
import { Player } from "../charts/player.ts";
import { addressOf } from "../desk.ts";
import type { Desk } from "../desk.ts";
import { button, make, setHidden, setText } from "../dom.ts";
import { ExplainedLines } from "../explained-lines.ts";
import { durationText, shortName } from "../known/phrases.ts";
import { itemState } from "../known/row-states.ts";
import { SidePanel } from "../side-panel.ts";

export class ItemSide {
  readonly panel: SidePanel;
  readonly #desk: Desk;
  readonly #player = new Player("Chart of the item");
  readonly #lines = new ExplainedLines((explained) => this.#hear(explained));
  readonly #digest = make("p", { class: "mono quiet wrap" });
  readonly #attempts = make("div");
  readonly #retry: HTMLButtonElement;
  #name = "";
  /** Its 64 digits, once they are known. */
  #item = "";
  #saidState: string | null = null;
  #movesWhenSaid = 0;

  constructor(desk: Desk) {
    this.#desk = desk;
    this.panel = new SidePanel("Item", () => {
      location.hash = addressOf("items");
    });
    this.#retry = button("Retry", () => desk.ask({ deed: "retry", item: this.#item }));
    this.#retry.hidden = true;
    this.panel.deeds.append(this.#retry);
    this.panel.body.append(this.#digest, this.#lines.element, this.#player.element, this.#attempts);
  }

  show(name: string): void {
    if (this.#name !== name || !this.panel.isOpen) {
      this.#name = name;
      this.#item = /^[0-9a-f]{64}$/.test(name) ? name : "";
      this.#saidState = null;
      this.#retry.hidden = true;
      this.#attempts.replaceChildren();
      setText(this.#digest, this.#item);
      this.#lines.about(() => this.#desk.calls.explainItem(name));
      this.panel.open(shortName(name));
      const { cluster, calls } = this.#desk;
      void this.#player.show(calls.chart("work-item"), {
        moves: () => cluster.movesOf("work-item", this.#item),
        state: () => this.#state(),
      });
    }
    this.refresh();
  }

  refresh(): void {
    if (!this.panel.isOpen) return;
    this.#lines.refresh();
    this.#player.refresh();
  }

  /** Only items of the sample are followed step by step; the others are known as they were when they were asked for. */
  #state(): string | null {
    const { cluster } = this.#desk;
    const moves = cluster.movesOf("work-item", this.#item).length;
    return moves > this.#movesWhenSaid || this.#saidState === null
      ? cluster.stateOf("work-item", this.#item)
      : this.#saidState;
  }

  #hear({ object }: Explained): void {
    const { item, state, attempts } = object;
    if (typeof item === "string") this.#item = item;
    setText(this.#digest, this.#item);
    this.#saidState = typeof state === "string" ? itemState(state) : null;
    this.#movesWhenSaid = this.#desk.cluster.movesOf("work-item", this.#item).length;
    setHidden(this.#retry, state !== "failed");
    const rows = Array.isArray(attempts) ? attempts.map(attemptRow) : [];
    this.#attempts.replaceChildren(
      ...(rows.length === 0
        ? []
        : [table("Attempts", ["Attempt", "Outcome", "Worker", "Took", "Message"], rows)]),
    );
    this.#player.refresh();
  }
}

function attemptRow(row: unknown): readonly string[] {
  const attempt = (typeof row === "object" && row !== null ? row : {}) as Readonly<Record<string, unknown>>;
  const text = (name: string): string => {
    const value = attempt[name];
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  const tookMs = attempt["duration_ms"];
  const took = typeof tookMs === "number" ? durationText(tookMs) : "";
  return [text("attempt"), text("outcome"), text("worker"), took, text("message")];
}
