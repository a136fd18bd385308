// A chart with the state of one actor lit, its log beside it, and the buttons by which a person stops it and steps through it.
import type { ChartPicture } from "../../page-messages.ts";
import { button, make, setAttribute, setDisabled, setHidden, setText } from "../dom.ts";
import { ChartIndex } from "../known/chart-index.ts";
import { Playback } from "../known/playback.ts";
import type { Move } from "../known/playback.ts";
import { countOf } from "../known/phrases.ts";
import { Unanswered } from "../server-calls.ts";
import { chartTable } from "./chart-table.ts";
import { Drawing, undrawn } from "./drawing.ts";
import { MoveLog } from "./move-log.ts";
import { DrawingFrame } from "./drawing-frame.ts";

/** The actor that is followed. */
export interface Followed {
  /** Oldest first. */
  readonly moves: () => readonly Move[];
  /** The name of the state that it is in; null when that is not known. */
  readonly state: () => string | null;
}

const NOBODY: Followed = { moves: () => [], state: () => null };

export class Player {
  readonly element: HTMLElement;
  readonly #playback = new Playback();
  readonly #log = new MoveLog((number) => this.#do(() => this.#playback.goTo(this.#live, number)));
  readonly #frame = new DrawingFrame();
  readonly #now = make("p", { class: "now" });
  readonly #below = make("div");
  readonly #pause = button("Pause", () => this.#do(() => this.#toggle()), { class: "pause" });
  readonly #back = button("Step back", () => this.#do(() => this.#playback.back(this.#live)));
  readonly #forward = button("Step forward", () => this.#do(() => this.#playback.forward()));
  #drawing: Drawing | undefined;
  #index: ChartIndex | undefined;
  #followed = NOBODY;
  #asked: Promise<ChartPicture> | undefined;
  #shownTaken: number | undefined;
  #isFresh = true;

  constructor(label: string) {
    const steps = make("div", { class: "steps", role: "group", "aria-label": `Steps of ${label}` });
    steps.append(this.#pause, this.#back, this.#forward);
    const bar = make("div", { class: "player-bar" }, steps, this.#now, this.#frame.buttons);
    const main = make("div", { class: "player-main" }, bar, this.#frame.element, this.#below);
    this.element = make("section", { class: "player", "aria-label": label }, main, this.#log.element);
  }

  /** The chart that comes, and the actor whose state is lit in it. */
  async show(asked: Promise<ChartPicture>, followed: Followed): Promise<void> {
    this.#followed = followed;
    this.#playback.resume();
    this.#isFresh = true;
    this.#shownTaken = undefined;
    if (this.#asked !== asked) {
      this.#asked = asked;
      try {
        const picture = await asked;
        // Another one was asked for meanwhile.
        if (this.#asked !== asked) return;
        this.#draw(picture);
      } catch (error) {
        if (this.#asked !== asked) return;
        this.#asked = undefined;
        this.#complain(error);
      }
    }
    this.refresh();
  }

  /** Changes what has changed since the last time, and nothing else. */
  refresh(): void {
    const live = this.#live;
    const moves = this.#playback.moves(live);
    const happened = this.#playback.happened(live);
    const { state, taken } = this.#playback.sight(live, this.#followed.state());
    this.#log.show(moves, happened, !this.#playback.isLive);
    this.#words(state, moves.length, happened, this.#playback.newer(live));
    if (this.#drawing === undefined || this.#index === undefined) return;
    const lit = this.#index.lit(state ?? "");
    this.#drawing.light(lit);
    if (taken?.number !== this.#shownTaken || this.#isFresh) {
      const ids = taken?.isMove === true ? this.#index.taken(taken.from, taken.to, taken.cause) : [];
      this.#drawing.take(ids, !this.#isFresh);
      this.#shownTaken = taken?.number;
      const before = this.#index.lit(taken?.from ?? "");
      const entered = taken === null ? undefined : [...lit].findLast((id) => !before.has(id));
      this.#frame.bringIntoView(this.#drawing.stateOf(entered));
      this.#isFresh = false;
    }
  }

  get #live(): readonly Move[] {
    return this.#followed.moves();
  }

  #draw(picture: ChartPicture): void {
    this.#drawing = picture.svg === null ? undefined : Drawing.of(picture);
    this.#index = new ChartIndex(picture);
    if (this.#drawing === undefined) this.#frame.show(undrawn(picture));
    else this.#frame.showDrawing(this.#drawing, picture.name);
    const description =
      picture.description === null ? [] : [make("p", { class: "quiet" }, picture.description)];
    this.#below.replaceChildren(...description, chartTable(picture));
  }

  #complain(error: unknown): void {
    this.#drawing = undefined;
    this.#index = undefined;
    const words =
      error instanceof Unanswered ? `${error.message} ${error.hint}` : "This chart cannot be shown.";
    this.#frame.show(make("p", { class: "empty" }, words));
    this.#below.replaceChildren();
  }

  #do(change: () => void): void {
    change();
    this.refresh();
  }

  #toggle(): void {
    if (this.#playback.isLive) this.#playback.pause(this.#live);
    else this.#playback.resume();
  }

  #words(state: string | null, moves: number, happened: number, newer: number): void {
    const { isLive } = this.#playback;
    const place = `step ${happened} of ${moves}${newer === 0 ? "" : `, ${countOf(newer, "newer one")}`}`;
    const name = state === null || state === "" ? "its state is not known" : state;
    setText(this.#now, isLive ? name : `${name} (held: ${place})`);
    setText(this.#pause, isLive ? "Pause" : "Go live");
    setAttribute(this.#now, "data-held", !isLive);
    setDisabled(this.#back, happened === 0);
    setDisabled(this.#forward, isLive || happened === moves);
    setHidden(this.#log.element, this.#followed === NOBODY);
  }
}

/** A chart that is shown for itself. */
export const nobody: Followed = NOBODY;
