// All programs that are or were connected, for all pages: news are gathered, and told a few times a second while a page looks.
//
// Keeps true: the parts of one program never depend on how much another one says; nothing is gathered for nobody.
import { createHash } from "node:crypto";
import type { Clock, Timer } from "../base/clock.ts";
import type { Logger } from "../observe/log.ts";
import { isMachineDefinition } from "../charts/read-definition.ts";
import type { Drawing } from "./drawing.ts";
import type { ChartPicture, PageNews } from "./page-messages.ts";
import { ProgramView } from "./program.ts";
import { PROGRAM_LIMITS } from "./program-limits.ts";
import type { StatelyMessage } from "./stately-messages.ts";

export interface ProgramsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly drawing: Drawing;
  /** Ids of its programs begin with it; two of one page have others. `p` unless said. */
  readonly idPrefix?: string;
}

interface Definition {
  readonly text: string;
  /** Resolves when it is known whether it can be read. */
  readonly isReadable: Promise<boolean>;
}

interface Known {
  readonly view: ProgramView;
  readonly definitions: Map<string, Definition>;
  definitionsCharacters: number;
}

export class Programs {
  readonly #options: ProgramsOptions;
  readonly #known = new Map<string, Known>();
  /** Pictures as JSON by hash: equal definitions have one, whoever told them. The last that was asked for is the last. */
  readonly #pictures = new Map<string, string>();
  #picturesCharacters = 0;
  /** Programs that are not there any more, since the last news. */
  #gone: string[] = [];
  #counted = 0;
  #told: ((news: PageNews) => void) | undefined;
  #timer: Timer | undefined;

  constructor(options: ProgramsOptions) {
    this.#options = options;
  }

  get connected(): number {
    return [...this.#known.values()].filter(({ view }) => view.isConnected).length;
  }

  /** A program that calls itself as one that has gone did takes its place. */
  connect(givenName: string | undefined): ProgramView {
    const { idPrefix = "p" } = this.#options;
    const sinceMs = Math.round(this.#options.clock.wallMs());
    const view = new ProgramView({ programId: `${idPrefix}${++this.#counted}`, givenName, sinceMs });
    const past = [...this.#known.values()].filter((known) => !known.view.isConnected);
    const former = past.filter((known) => givenName !== undefined && known.view.givenName === givenName);
    const tooMany = past.slice(0, Math.max(0, past.length - PROGRAM_LIMITS.gone));
    for (const { view: old } of new Set([...former, ...tooMany])) this.#forget(old.programId);
    this.#known.set(view.programId, { view, definitions: new Map(), definitionsCharacters: 0 });
    this.#arm();
    return view;
  }

  take(view: ProgramView, message: StatelyMessage): void {
    const isTaken = view.take(message, this.#options.clock.wallMs());
    if (isTaken && message.kind === "actor" && message.definition !== null)
      this.#define(view.programId, message, message.definition);
    this.#arm();
  }

  leave(view: ProgramView, sessionId: string): void {
    view.leave(sessionId);
    this.#arm();
  }

  complain(view: ProgramView, about: string, words: string): void {
    const isFirst = view.complain(about, words);
    if (isFirst) this.#options.log.info("a program is complained of", { program: view.programId, words });
    this.#arm();
  }

  disconnect(view: ProgramView): void {
    view.end();
    this.#arm();
  }

  whole(): readonly PageNews[] {
    return [...this.#known.values()].flatMap(({ view }) => view.whole());
  }

  follow(told: (news: PageNews) => void): () => void {
    for (const { view } of this.#known.values()) view.forgetNews();
    this.#gone = [];
    this.#told = told;
    return () => {
      if (this.#told === told) this.#told = undefined;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** Undefined when there is none, or none that can be drawn. */
  async definition(programId: string, hash: string): Promise<ChartPicture | undefined> {
    const known = this.#known.get(programId);
    const found = known?.definitions.get(hash);
    if (known === undefined || found === undefined) return undefined;
    const picture = this.#pictures.get(hash) ?? (await this.#draw(known.view, hash, found.text));
    return picture === undefined ? undefined : (JSON.parse(picture) as ChartPicture);
  }

  close(): void {
    this.#timer?.cancel();
    this.#told = undefined;
  }

  #define(programId: string, { sessionId, name }: StatelyMessage & { kind: "actor" }, text: string): void {
    const known = this.#known.get(programId);
    if (known === undefined || !isMachineDefinition(text)) return;
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 32);
    const definition = known.definitions.get(hash) ?? this.#read(known, hash, text, name);
    void definition?.isReadable.then((isReadable) => {
      if (!isReadable) return;
      known.view.define(sessionId, hash);
      this.#arm();
    });
  }

  /** Undefined when there is no room for it, which is complained of. */
  #read(known: Known, hash: string, text: string, name: string): Definition | undefined {
    const { view, definitions } = known;
    const mib = (characters: number): string => (characters / (1_024 * 1_024)).toFixed(1);
    if (text.length > PROGRAM_LIMITS.definitionCharacters) {
      const limit = mib(PROGRAM_LIMITS.definitionCharacters);
      this.complain(
        view,
        `large ${name}`,
        `the definition of ${name} is too large: ${mib(text.length)} MiB, and at most ${limit} are read`,
      );
      return undefined;
    }
    const characters = known.definitionsCharacters + text.length;
    if (definitions.size >= PROGRAM_LIMITS.definitions || characters > PROGRAM_LIMITS.definitionsCharacters) {
      this.complain(view, "definitions", "it has too many definitions, or too large ones: some are left out");
      return undefined;
    }
    known.definitionsCharacters = characters;
    const definition = { text, isReadable: this.#judge(view, text, name) };
    definitions.set(hash, definition);
    return definition;
  }

  async #judge(view: ProgramView, text: string, name: string): Promise<boolean> {
    const answer = await this.#options.drawing.answer(view.programId, { kind: "read", text });
    if (answer.kind === "unreadable") {
      this.complain(view, `read ${name}`, `the definition of ${name} is not drawn: ${answer.reason}`);
      return false;
    }
    if (answer.kind === "read" && answer.isCut)
      this.complain(
        view,
        `cut ${name}`,
        `the definition of ${name} is not whole: the program leaves out what is nested deeper than its serializationDepthLimit`,
      );
    return true;
  }

  /** One that cannot be laid out is kept without a picture: it is not tried again. */
  async #draw(view: ProgramView, hash: string, text: string): Promise<string | undefined> {
    const { drawing } = this.#options;
    let answer = await drawing.answer(view.programId, { kind: "draw", text });
    if (answer.kind === "unreadable") {
      this.complain(view, `draw ${hash}`, `a chart is not drawn: ${answer.reason}`);
      answer = await drawing.answer(view.programId, { kind: "outline", text });
    }
    if (answer.kind !== "drawn") return undefined;
    this.#keep(hash, answer.picture);
    return answer.picture;
  }

  #keep(hash: string, picture: string): void {
    if (!this.#pictures.has(hash)) this.#picturesCharacters += picture.length;
    this.#pictures.set(hash, picture);
    for (const [oldest, kept] of this.#pictures) {
      if (this.#picturesCharacters <= PROGRAM_LIMITS.picturesCharacters) break;
      this.#pictures.delete(oldest);
      this.#picturesCharacters -= kept.length;
    }
  }

  #forget(programId: string): void {
    this.#known.delete(programId);
    this.#options.drawing.forget(programId);
    this.#gone.push(programId);
  }

  /** Tells in a moment, if somebody looks and it is not about to. */
  #arm(): void {
    if (this.#told === undefined || this.#timer !== undefined) return;
    const { clock } = this.#options;
    const { newsIntervalMs } = PROGRAM_LIMITS;
    this.#timer = clock.after(newsIntervalMs, () => this.#tell(), { background: true });
  }

  #tell(): void {
    this.#timer = undefined;
    const told = this.#told;
    if (told === undefined) return;
    for (const program_id of this.#gone) told({ kind: "program_gone", program_id });
    this.#gone = [];
    const share = PROGRAM_LIMITS.newsCharacters / Math.max(1, this.#known.size);
    for (const { view } of this.#known.values()) {
      for (const news of view.news(share)) told(news);
      if (view.hasNews) this.#arm();
    }
  }
}
