// One program that is or was connected: its actors as a tree, the last of what they did, and complaints about it.
//
// Keeps true: everything of it is bounded, whatever it says; what is taken away for that is counted and named.
import { printable } from "../base/safe-text.ts";
import type { ActorRow, LogEntry, Program, ProgramNews } from "./page-messages.ts";
import { PROGRAM_LIMITS } from "./program-limits.ts";
import type { StatelyMessage } from "./stately-messages.ts";

const COMPLAINT_CHARACTERS_MAX = 300;
/** Clocks of programs of this machine do not differ; a time that is further away is none. */
const TIME_OFF_MAX_MS = 3_600_000;
/** A row and an entry are this much longer than their texts. */
const FRAME_CHARACTERS = 120;

type Actor = { -readonly [Field in keyof ActorRow]: ActorRow[Field] };

export interface ProgramFacts {
  readonly programId: string;
  /** As it calls itself; else by the actor that it tells of first. */
  readonly givenName: string | undefined;
  readonly sinceMs: number;
}

export class ProgramView {
  readonly programId: string;
  readonly #facts: ProgramFacts;
  readonly #actors = new Map<string, Actor>();
  readonly #complaints = new Map<string, string>();
  #log: LogEntry[] = [];
  #numbered = 0;
  #name: string;
  #isConnected = true;
  /** Since the last news. */
  #isChanged = true;
  readonly #changed = new Set<Actor>();
  readonly #gone = new Set<string>();
  #toldNumber = 0;

  constructor(facts: ProgramFacts) {
    this.#facts = facts;
    this.programId = facts.programId;
    this.#name = facts.givenName ?? `program ${facts.programId}`;
  }

  get givenName(): string | undefined {
    return this.#facts.givenName;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Whether rows have not been told for want of room. */
  get hasNews(): boolean {
    return this.#changed.size > 0;
  }

  end(): void {
    this.#isConnected = false;
    this.#isChanged = true;
  }

  /** `about` is the complaint's kind: a later one of it takes the place of the one before. True for the first of its kind. */
  complain(about: string, words: string): boolean {
    const isFirst = !this.#complaints.has(about);
    if (isFirst && this.#complaints.size >= PROGRAM_LIMITS.complaints) return false;
    const text = printable(words);
    const shown =
      text.length <= COMPLAINT_CHARACTERS_MAX ? text : `${text.slice(0, COMPLAINT_CHARACTERS_MAX - 1)}…`;
    if (this.#complaints.get(about) === shown) return false;
    this.#complaints.set(about, shown);
    this.#isChanged = true;
    return isFirst;
  }

  /** False when there was no room for its actor. */
  take(message: StatelyMessage, nowMs: number): boolean {
    const actor = this.#actors.get(message.sessionId) ?? this.#add(message.sessionId);
    if (actor === undefined) return false;
    this.#changed.add(actor);
    switch (message.kind) {
      case "actor":
        this.#introduce(actor, message);
        return true;
      case "event":
        this.#note(message, nowMs, "", message.detail);
        return true;
      case "snapshot":
        actor.value = message.value;
        actor.status = message.status;
        this.#note(message, nowMs, message.value, message.detail);
        return true;
    }
  }

  /** The actor is not there any more; its log stays. */
  leave(sessionId: string): void {
    const actor = this.#actors.get(sessionId);
    if (actor === undefined) return;
    this.#actors.delete(sessionId);
    this.#changed.delete(actor);
    this.#gone.add(sessionId);
  }

  /** The actor's chart can be shown from now on. */
  define(sessionId: string, hash: string): void {
    const actor = this.#actors.get(sessionId);
    if (actor === undefined) return;
    actor.definition = hash;
    this.#changed.add(actor);
  }

  /** All that is known, for a page that has just come. */
  whole(): ProgramNews[] {
    const from = this.#fitting(this.#log.length, PROGRAM_LIMITS.wholeLogCharacters);
    const dropped = this.#numbered - this.#log.length + from;
    return [
      { kind: "program", program: this.#described() },
      {
        ...{ kind: "actors", program_id: this.programId, anew: true, gone: [] },
        changed: [...this.#actors.values()].map((actor) => ({ ...actor })),
      },
      { kind: "log", program_id: this.programId, entries: this.#log.slice(from), dropped },
    ];
  }

  /** Nobody has followed until now: what there is, a page is told as a whole. */
  forgetNews(): void {
    this.#isChanged = false;
    this.#changed.clear();
    this.#gone.clear();
    this.#toldNumber = this.#numbered;
  }

  /** News since it was asked last, in about so many characters: rows that do not fit come next time, older entries never. */
  news(charactersMax: number): ProgramNews[] {
    const news: ProgramNews[] = [];
    const { programId: program_id } = this;
    if (this.#isChanged) news.push({ kind: "program", program: this.#described() });
    this.#isChanged = false;
    const changed = this.#takeChanged(charactersMax / 2);
    const gone = [...this.#gone];
    this.#gone.clear();
    if (changed.length + gone.length > 0)
      news.push({ kind: "actors", program_id, anew: false, changed, gone });
    const fresh = Math.min(this.#numbered - this.#toldNumber, this.#log.length);
    const from = this.#fitting(fresh, charactersMax / 2);
    const entries = this.#log.slice(from);
    const dropped = this.#numbered - this.#toldNumber - entries.length;
    this.#toldNumber = this.#numbered;
    if (entries.length + dropped > 0) news.push({ kind: "log", program_id, entries, dropped });
    return news;
  }

  #described(): Program {
    const { programId: program_id } = this;
    return {
      ...{ program_id, name: this.#name, connected: this.#isConnected, since_ms: this.#facts.sinceMs },
      complaints: [...this.#complaints.values()],
    };
  }

  #takeChanged(charactersMax: number): ActorRow[] {
    const rows: ActorRow[] = [];
    let characters = 0;
    for (const actor of this.#changed) {
      if (characters > charactersMax) break;
      this.#changed.delete(actor);
      characters += FRAME_CHARACTERS + actor.name.length + actor.session_id.length + actor.value.length;
      rows.push({ ...actor });
    }
    return rows;
  }

  /** Where the last `count` entries begin, as far as they fit. */
  #fitting(count: number, charactersMax: number): number {
    let at = this.#log.length;
    let characters = 0;
    for (const end = this.#log.length - count; at > end; at--) {
      const entry = this.#log[at - 1];
      if (entry === undefined) break;
      characters += FRAME_CHARACTERS + entry.detail.length + entry.event.length + entry.value.length;
      if (characters > charactersMax) break;
    }
    return at;
  }

  #add(sessionId: string): Actor | undefined {
    if (this.#actors.size >= PROGRAM_LIMITS.actors && !this.#makeRoom()) {
      this.complain(
        "actors",
        `it has more than ${PROGRAM_LIMITS.actors} actors at once: others are left out`,
      );
      return undefined;
    }
    const row = { session_id: sessionId, parent_id: null, name: sessionId, definition: null };
    const actor: Actor = { ...row, value: "", status: "active" };
    this.#actors.set(sessionId, actor);
    this.#gone.delete(sessionId);
    return actor;
  }

  /** Takes away one that has ended, if there is one. */
  #makeRoom(): boolean {
    for (const [sessionId, actor] of this.#actors) {
      if (actor.status === "active") continue;
      this.leave(sessionId);
      return true;
    }
    return false;
  }

  #introduce(actor: Actor, { name, parentId, value, status }: StatelyMessage & { kind: "actor" }): void {
    if (this.#facts.givenName === undefined && this.#actors.size === 1 && name !== "") {
      this.#name = name;
      this.#isChanged = true;
    }
    actor.name = name === "" ? actor.session_id : name;
    actor.value = value;
    actor.status = status;
    const isTree = parentId === null || this.#mayBeBelow(actor, parentId);
    actor.parent_id = isTree ? parentId : null;
    if (!isTree) this.complain("tree", `its actors are no tree, or a deep one: ${actor.session_id}`);
  }

  /** Whether the way up from the parent ends, and not at the actor itself. */
  #mayBeBelow(actor: Actor, parentId: string): boolean {
    let above: string | null = parentId;
    for (let depth = 1; above !== null; depth++) {
      if (above === actor.session_id || depth > PROGRAM_LIMITS.actorDepth) return false;
      above = this.#actors.get(above)?.parent_id ?? null;
    }
    return true;
  }

  #note(
    { kind, sessionId: session_id, event, createdAtMs }: Exclude<StatelyMessage, { kind: "actor" }>,
    nowMs: number,
    value: string,
    detail: string,
  ): void {
    const isTime = createdAtMs !== null && Math.abs(createdAtMs - nowMs) < TIME_OFF_MAX_MS;
    const at_ms = Math.round(isTime ? createdAtMs : nowMs);
    this.#log.push({ number: ++this.#numbered, at_ms, session_id, kind, event, value, detail });
    if (this.#log.length > 2 * PROGRAM_LIMITS.logEntries)
      this.#log = this.#log.slice(-PROGRAM_LIMITS.logEntries);
  }
}
