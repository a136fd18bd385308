// The completion that the pieces of an answer make, as server-sent events bring them.
//
// Keeps true: an event that does not end is not kept beyond the limit.
import { formatJson, memberOf } from "../../../base/exact-json.ts";
import type { AnswerBody, Verdict } from "../../../transport/exchange.ts";
import { Completion } from "./completion.ts";

const SERVER_ERROR = 500;
/** The name and the punctuation of a field, and the space between pieces. */
const EVENT_OVERHEAD_CHARACTERS = 65_536;

export class CompletionBody implements AnswerBody {
  readonly #limit: number;
  readonly #completion = new Completion();
  readonly #events: EventStream;
  #isGarbled = false;

  constructor(limit: number) {
    this.#limit = limit;
    this.#events = new EventStream(limit + EVENT_OVERHEAD_CHARACTERS, (data) => {
      if (!this.#completion.add(data)) this.#isGarbled = true;
    });
  }

  write(chunk: Uint8Array): Verdict {
    const isShort = this.#events.write(chunk);
    if (this.#isGarbled) return "garbled";
    return isShort && this.#completion.characters <= this.#limit ? "more" : "too_large";
  }

  get status(): number | undefined {
    const { failure } = this.#completion;
    if (failure === undefined) return undefined;
    const code = memberOf(failure["error"], "code");
    return typeof code === "number" && code >= 400 && code < 600 ? code : SERVER_ERROR;
  }

  end(): Uint8Array | undefined {
    const { failure, isWhole } = this.#completion;
    if (failure !== undefined) return Buffer.from(formatJson(failure));
    return isWhole ? Buffer.from(this.#completion.format()) : undefined;
  }
}

/** Reads server-sent events: bytes in, the data of whole events out. Other fields are passed over. */
export class EventStream {
  readonly #onData: (data: string) => void;
  readonly #limit: number;
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];
  #size = 0;

  /** `limit`: characters of one event. */
  constructor(limit: number, onData: (data: string) => void) {
    this.#limit = limit;
    this.#onData = onData;
  }

  /** False when an event is over the limit: nothing more can be read. */
  write(chunk: Uint8Array): boolean {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
      this.#line(text.slice(from, text[at - 1] === "\r" && at > from ? at - 1 : at));
      from = at + 1;
    }
    this.#rest = text.slice(from);
    return this.#size + this.#rest.length <= this.#limit;
  }

  #line(line: string): void {
    if (line === "") return this.#dispatch();
    const data = /^data(?::\s?|$)/.exec(line);
    if (data === null) return;
    this.#data.push(line.slice(data[0].length));
    this.#size += line.length;
  }

  #dispatch(): void {
    if (this.#data.length > 0) this.#onData(this.#data.join("\n"));
    this.#data = [];
    this.#size = 0;
  }
}
