// The state in which this host has last seen a store, in a file below the state directory: `coordinators/<store>.seen`. Every coordinator of the host writes
// the same one; each takes over what another has written there.
//
// Keeps true: a reader meets a whole file; no commit waits for it. A file that cannot be read or written keeps nobody from leading: then
// this host remembers less, and the log says so.
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock, Timer } from "../base/clock.ts";
import { jsonFields } from "../base/exact-json.ts";
import { ifThere, makeDirectory, replaceFile } from "../base/file-system.ts";
import type { StoreId } from "../base/ids.ts";
import { laterOf, NO_EXTENT, NOTHING_SEEN } from "../coordinator/lead/store-memory.ts";
import type { Remembered, StoreExtent, StoreMemory } from "../coordinator/lead/store-memory.ts";
import type { Logger } from "../observe/log.ts";
import { SECRET_MODE } from "../transport/tls/credential-files.ts";

export interface SeenFileOptions {
  readonly stateDir: string;
  readonly storeId: StoreId;
  readonly clock: Clock;
  readonly log: Logger;
}

const VERSION = 1;
/** How old what is written down may be while the store goes on. */
const WRITTEN_WITHIN_MS = 1_000;

export class SeenFile implements StoreMemory {
  readonly #file: string;
  readonly #options: SeenFileOptions;
  #known: Remembered = NOTHING_SEEN;
  #isWritten = true;
  #timer: Timer | undefined;
  #hasWarned = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: SeenFileOptions) {
    this.#options = options;
    this.#file = join(options.stateDir, "coordinators", `${options.storeId}.seen`);
  }

  async recall(): Promise<Remembered> {
    const found = await this.#read();
    if (found !== undefined) this.#known = laterOf(this.#known, found);
    return this.#known;
  }

  note(seen: Partial<StoreExtent>): void {
    this.adopt({ ...NO_EXTENT, accepted: this.#known.accepted, ...seen });
  }

  adopt(accepted: Remembered): void {
    const further = laterOf(this.#known, accepted);
    if (isSame(further, this.#known)) return;
    this.#change(further);
  }

  accept({ completion, submitted, done }: StoreExtent): void {
    const { epoch, accepted } = this.#known;
    this.#change({ epoch, completion, submitted, done, accepted: accepted + 1 });
  }

  keep(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  #change(known: Remembered): void {
    this.#known = known;
    this.#isWritten = false;
    const keep = (): void => void this.keep();
    this.#timer ??= this.#options.clock.after(WRITTEN_WITHIN_MS, keep, { background: true });
  }

  async #write(): Promise<void> {
    if (this.#isWritten) return;
    const known = await this.recall();
    this.#isWritten = true;
    const content = `${JSON.stringify({ version: VERSION, store: this.#options.storeId, ...known })}\n`;
    const temporary = `${this.#file}.${process.pid}`;
    try {
      await makeDirectory(dirname(this.#file));
      await replaceFile(this.#file, content, { temporary, mode: SECRET_MODE, synced: "content" });
    } catch (err) {
      this.#warn("how far the database has got cannot be written down", err);
    }
  }

  async #read(): Promise<Remembered | undefined> {
    try {
      const text = await ifThere(readFile(this.#file, "utf8"));
      if (text === undefined) return undefined;
      const fields = jsonFields(text);
      const count = (name: keyof Remembered, min = 0): number => {
        const value = fields[name];
        if (typeof value === "number" && Number.isSafeInteger(value) && value >= min) return value;
        throw new Error(`${name} is no number`);
      };
      return {
        epoch: count("epoch", -1),
        completion: count("completion"),
        submitted: count("submitted"),
        done: count("done"),
        accepted: count("accepted"),
      };
    } catch (err) {
      this.#warn("how far the database had got cannot be read", err);
      return undefined;
    }
  }

  /** Once: it is tried on each second. */
  #warn(message: string, err: unknown): void {
    if (!this.#hasWarned) this.#options.log.warn(message, { file: this.#file, err });
    this.#hasWarned = true;
  }
}

function isSame(one: Remembered, other: Remembered): boolean {
  return (Object.keys(one) as (keyof Remembered)[]).every((name) => one[name] === other[name]);
}
