// Keys as the batches of coordinators tell them, kept beside the room of keys and without any of its code: a mailbox for each key.
//
// Keeps true: after every batch one item of a key is with a worker at most, items begin in order of submission, nothing passes a failed
// item that nobody has asked to skip, and the state is the fold of the successes, each once.
import { isKeyed, isPlace, sequenceOf } from "../../src/coordinator/ledger/place.ts";
import { doneRecord, failedRecord, itemRecord } from "../../src/coordinator/ledger/records.ts";
import { keyRecord, keyStateRecord } from "../../src/coordinator/keys/key-records.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  KEYS_PREFIX,
  RUNNING_PREFIX,
  STATES_PREFIX,
} from "../../src/storage/keys.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import { Violation } from "./world.ts";

/** Between the successes that a state names. */
export const STATE_SEPARATOR = "|";

/** A success as a state names it. */
export function folded(idText: string, attempt: number): string {
  return `${idText}#${attempt}`;
}

interface Letter {
  readonly idText: string;
  readonly sequence: number;
  readonly mailbox: Mailbox;
  /** `dropped`: its actor had no use for it, and what is behind it goes on. */
  status: "open" | "running" | "done" | "failed" | "dropped";
  /** It was given out before, so others may have come before it since. */
  hasBegun: boolean;
}

interface Mailbox {
  readonly key: string;
  readonly letters: Letter[];
  /** Successes in the order in which they were committed. */
  readonly folded: string[];
}

export class ShadowKeys {
  readonly #byPlace = new Map<string, Letter>();
  readonly #byId = new Map<string, Letter>();
  readonly #mailboxes = new Map<string, Mailbox>();
  /** By the path of the rows of a key. */
  readonly #texts = new Map<string, string>();
  readonly #mayPass: ReadonlySet<string>;
  readonly #mayBePaused: ReadonlySet<string>;
  readonly #hasActors: boolean;

  /** `mayPass`: keys whose failed items somebody has asked to skip. `hasActors`: their states, and what keeps them, are somebody else's to look at. */
  constructor(mayPass: ReadonlySet<string>, mayBePaused: ReadonlySet<string>, hasActors = false) {
    this.#mayPass = mayPass;
    this.#mayBePaused = mayBePaused;
    this.#hasActors = hasActors;
  }

  /** Throws a violation. `isWhole`: it is all that a store has, and not what a turn has written. */
  take({ puts, deletes }: Pick<Batch, "puts" | "deletes">, isWhole = false): void {
    for (const entry of under(puts, ITEMS_PREFIX)) this.#submitted(entry);
    for (const key of deletes) this.#deleted(key);
    for (const { key, value } of under(puts, KEYS_PREFIX))
      this.#texts.set(key.slice(KEYS_PREFIX.length), read(keyRecord, key, value).text);
    this.#done(under(puts, DONE_PREFIX));
    for (const entry of under(puts, FAILED_PREFIX)) this.#failed(entry);
    for (const { key } of under(puts, RUNNING_PREFIX))
      this.#begins(key.slice(RUNNING_PREFIX.length), isWhole);
    if (!this.#hasActors) this.#checkStates(puts);
  }

  #checkStates(puts: readonly Entry[]): void {
    for (const entry of under(puts, STATES_PREFIX)) this.#checkState(entry);
    const states = new Set(under(puts, STATES_PREFIX).map(({ key }) => this.#textOf(key)));
    for (const { key } of under(puts, DONE_PREFIX)) {
      const letter = this.#byPlace.get(key.slice(DONE_PREFIX.length));
      if (letter !== undefined && !states.has(letter.mailbox.key))
        throw new Violation(`K2: an item of ${letter.mailbox.key} is done, and its state is not committed`);
    }
  }

  /** Nothing of a key is taken late. */
  has(idText: string): boolean {
    return this.#byId.has(idText);
  }

  /** Whether nothing of its key comes before it; true for an item without a key. A key that may be parked has no next one. */
  mayBeNext(idText: string): boolean {
    const letter = this.#byId.get(idText);
    if (letter === undefined) return true;
    const { key, letters } = letter.mailbox;
    if (this.#mayBePaused.has(key)) return false;
    if (letters.some(({ status }) => status === "running" || status === "failed")) return false;
    return letters.find(({ status }) => status === "open") === letter;
  }

  #submitted({ key, value }: Entry): void {
    const place = key.slice(ITEMS_PREFIX.length);
    if (!isPlace(place) || !isKeyed(place)) return;
    const item = read(itemRecord, key, value);
    const mailbox = this.#mailboxes.get(item.key) ?? { key: item.key, letters: [], folded: [] };
    this.#mailboxes.set(item.key, mailbox);
    const idText = itemIdText(item.id);
    const letter: Letter = { idText, sequence: sequenceOf(place), mailbox, status: "open", hasBegun: false };
    mailbox.letters.push(letter);
    mailbox.letters.sort((one, other) => one.sequence - other.sequence);
    this.#byPlace.set(place, letter);
    this.#byId.set(idText, letter);
  }

  #deleted(key: string): void {
    for (const prefix of [RUNNING_PREFIX, FAILED_PREFIX])
      if (key.startsWith(prefix)) this.#set(key.slice(prefix.length), "open");
  }

  #done(entries: readonly Entry[]): void {
    const done = entries.map(({ key, value }) => ({ key, record: read(doneRecord, key, value) }));
    done.sort((one, other) => one.record.completion - other.record.completion);
    for (const { key, record } of done) {
      const letter = this.#set(key.slice(DONE_PREFIX.length), "done");
      letter?.mailbox.folded.push(folded(letter.idText, record.attempt));
    }
  }

  #failed({ key, value }: Entry): void {
    const { class: as, message } = read(failedRecord, key, value);
    const isDropped = this.#hasActors && (as === "cancelled" || message.startsWith("actor_done"));
    this.#set(key.slice(FAILED_PREFIX.length), isDropped ? "dropped" : "failed");
  }

  #set(place: string, status: Letter["status"]): Letter | undefined {
    const letter = this.#byPlace.get(place);
    if (letter !== undefined) letter.status = status;
    return letter;
  }

  #begins(place: string, isWhole: boolean): void {
    const letter = this.#byPlace.get(place);
    if (letter === undefined) return;
    const { key, letters } = letter.mailbox;
    if (letters.some(({ status }) => status === "running"))
      throw new Violation(`K1: two items of ${key} are with workers`);
    const before = letters.slice(0, letters.indexOf(letter));
    if (!isWhole && !letter.hasBegun) {
      if (before.some(({ status }) => status === "open"))
        throw new Violation(`K1: an item of ${key} begins before an earlier one`);
      if (!this.#hasActors && !this.#mayPass.has(key) && before.some(({ status }) => status === "failed"))
        throw new Violation(`K3: an item of ${key} passes one that has failed`);
    }
    letter.status = "running";
    letter.hasBegun = true;
  }

  #checkState({ key, value }: Entry): void {
    const mailbox = this.#mailboxes.get(this.#textOf(key) ?? "");
    const { state } = read(keyStateRecord, key, value);
    const named = Buffer.from(state).toString().split(STATE_SEPARATOR).slice(1);
    if (mailbox === undefined || named.join() !== mailbox.folded.join())
      throw new Violation(`K2: the state of ${mailbox?.key ?? key} is not that of its successes`);
  }

  #textOf(key: string): string | undefined {
    return this.#texts.get(key.slice(STATES_PREFIX.length));
  }
}

function under(entries: readonly Entry[], prefix: string): readonly Entry[] {
  return entries.filter(({ key }) => key.startsWith(prefix));
}

function read<T>(type: RecordType<T>, key: string, value: Uint8Array): T {
  return okOrFailure("shadow", decodeRecord(type, key, value));
}
