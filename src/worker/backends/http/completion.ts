// Puts the pieces of a streamed completion together, to the object that the server had answered without a stream.
import { formatJson, isJsonObject, parseJson, memberOf } from "../../../base/exact-json.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import type { AnswerBody, Verdict } from "../../../transport/exchange.ts";

type Table = Record<string, unknown>;

const OBJECTS: Readonly<Record<string, string>> = { "chat.completion.chunk": "chat.completion" };
const END = "[DONE]";
/** The least that a choice is, and an entry of a list: `{"index":0}`, `0,`. */
const CHOICE_CHARACTERS = 11;
const ENTRY_CHARACTERS = 2;

/** @internal */
export class Completion {
  readonly #whole: Table = {};
  readonly #choices = new Map<number, Table>();
  #isEnded = false;
  #characters = 0;
  /** The length of the longest value that each field has had. */
  readonly #longest = new Map<string, number>();
  #failure: JsonObject | undefined;

  /** Takes the data of one event. False when it is nothing that a completion is made of. */
  add(data: string): boolean {
    if (data === END) {
      this.#isEnded = true;
      return true;
    }
    const piece = parseJson(data);
    if (!isJsonObject(piece)) return false;
    if (isFilled(piece["error"])) this.#failure = piece;
    const { choices, ...rest } = piece;
    for (const [name, value] of Object.entries(rest))
      if (value !== null) this.#put(this.#whole, name, value, name);
    if (Array.isArray(choices)) for (const choice of choices) this.#addChoice(choice);
    return true;
  }

  /** About as many as the whole has by now. All that is kept counts, whatever a server makes of it (C8). */
  get characters(): number {
    return this.#characters;
  }

  /** The server said in the middle of it that it failed, and how. */
  get failure(): JsonObject | undefined {
    return this.#failure;
  }

  /** Whether nothing is missing: the stream said that it ended, or each choice did. */
  get isWhole(): boolean {
    const choices = [...this.#choices.values()];
    return (
      this.#isEnded || (choices.length > 0 && choices.every((choice) => isFilled(choice["finish_reason"])))
    );
  }

  /** JSON. */
  format(): string {
    const choices = [...this.#choices.entries()].sort(([left], [right]) => left - right);
    const object = this.#whole["object"];
    const named = typeof object === "string" ? { object: OBJECTS[object] ?? object } : {};
    return formatJson({ ...this.#whole, ...named, choices: choices.map(([, choice]) => choice) });
  }

  /** In place of what was there under that name. */
  #put(table: Table, name: string, value: unknown, field: string): void {
    if (Object.hasOwn(table, name) && table[name] === value) return;
    table[name] = value;
    const before = this.#longest.get(field) ?? -name.length;
    const length = formatJson(value).length;
    if (length <= before) return;
    this.#longest.set(field, length);
    this.#characters += length - before;
  }

  #addChoice(piece: unknown): void {
    if (!isJsonObject(piece)) return;
    const index = typeof piece["index"] === "number" ? piece["index"] : 0;
    const choice = this.#choices.get(index) ?? this.#begin(index);
    for (const [name, value] of Object.entries(piece)) {
      if (name === "index") continue;
      if (name === "delta") choice["message"] = this.#join(choice["message"] ?? {}, value);
      else if (name === "text" || name === "logprobs") choice[name] = this.#join(choice[name], value);
      else this.#put(choice, name, value, `${index} ${name}`);
    }
  }

  #begin(index: number): Table {
    const choice: Table = { index };
    this.#choices.set(index, choice);
    this.#characters += CHOICE_CHARACTERS;
    return choice;
  }

  /** Texts and lists grow, tables grow field by field; what a piece leaves out stays. `known` was made here, and is changed. */
  #join(known: unknown, more: unknown): unknown {
    if (more === null || more === undefined) return known ?? more;
    if (typeof more === "string") {
      this.#characters += more.length;
      return typeof known === "string" ? known + more : more;
    }
    if (Array.isArray(more)) return this.#joinLists(Array.isArray(known) ? (known as unknown[]) : [], more);
    if (!isJsonObject(more)) return more;
    const joined: Table = isJsonObject(known) ? known : {};
    for (const [name, value] of Object.entries(more)) {
      if (!Object.hasOwn(joined, name)) this.#characters += name.length;
      joined[name] =
        NAMES.has(name) && isFilled(joined[name]) ? joined[name] : this.#join(joined[name], value);
    }
    return joined;
  }

  /** Entries that say which they are (calls of tools) grow; others are further ones. */
  #joinLists(joined: unknown[], more: readonly unknown[]): unknown[] {
    for (const entry of more) {
      const index = isJsonObject(entry) ? entry["index"] : undefined;
      const at = joined.findIndex(
        (one) => index !== undefined && isJsonObject(one) && one["index"] === index,
      );
      if (at === -1) {
        this.#characters += ENTRY_CHARACTERS;
        joined.push(this.#join(undefined, entry));
      } else joined[at] = this.#join(joined[at], entry);
    }
    return joined;
  }
}

/** Said whole each time, where they are said. */
const NAMES: ReadonlySet<string> = new Set(["role", "type", "id"]);

function isFilled(value: unknown): boolean {
  return value !== null && value !== undefined && value !== "";
}

// The completion that the pieces of an answer make, as server-sent events bring them.
//
// Keeps true: an event that does not end is not kept beyond the limit.

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
