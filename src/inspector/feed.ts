// The pages that are open: each is told everything when it comes, then what is new. News are written down once for all of them.
//
// Keeps true: nobody is waited for; a page that reads too slowly is cut off, and is whole when it comes again; sources are followed only
// while somebody reads, and a little longer.
import type { Clock, Timer } from "../base/clock.ts";
import type { NewsSource } from "./news-source.ts";
import type { Hello, PageNews } from "./page-messages.ts";

/** The way to one page. */
export interface Outlet {
  /** Bytes that have not left yet. */
  readonly waitingBytes: number;
  write(bytes: Uint8Array): void;
  /** Ends it there and then. `leave` is called for it as for any that goes. */
  cut(): void;
}

export interface FeedOptions {
  readonly sources: readonly NewsSource[];
  readonly hello: () => Hello;
  readonly clock: Clock;
}

/** Each costs a connection and what waits for it. */
const READERS_MAX = 1_024;
/** Bytes that may wait for one page, beside those that it is told at first. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** A page that is loaded anew is back by then. */
const LINGER_MS = 5_000;
/** How often a line without words says that the connection lives. */
const SIGN_MS = 5_000;
const SIGN = Buffer.from("\n");

export class Feed {
  readonly #options: FeedOptions;
  /** With the bytes that may wait for each. */
  readonly #readers = new Map<Outlet, number>();
  #endFollowing: (() => void) | undefined;
  #lingering: Timer | undefined;
  #sign: Timer | undefined;

  constructor(options: FeedOptions) {
    this.#options = options;
  }

  get readers(): number {
    return this.#readers.size;
  }

  /** False when there are too many. */
  join(outlet: Outlet): boolean {
    if (this.#readers.size >= READERS_MAX) return false;
    this.#lingering?.cancel();
    const { sources, hello } = this.#options;
    const whole = Buffer.concat([hello(), ...sources.flatMap((source) => source.whole())].map(lineOf));
    outlet.write(whole);
    this.#readers.set(outlet, whole.length + WAITING_BYTES_MAX);
    this.#endFollowing ??= this.#follow();
    return true;
  }

  /** Idempotent. */
  leave(outlet: Outlet): void {
    if (!this.#readers.delete(outlet) || this.#readers.size > 0) return;
    this.#lingering?.cancel();
    this.#lingering = this.#options.clock.after(LINGER_MS, () => this.#stop(), { background: true });
  }

  /** Cuts off everybody. Idempotent. */
  close(): void {
    for (const outlet of [...this.#readers.keys()]) outlet.cut();
    this.#readers.clear();
    this.#lingering?.cancel();
    this.#stop();
  }

  #follow(): () => void {
    const ends = this.#options.sources.map((source) => source.follow((news) => this.#tell(lineOf(news))));
    this.#giveSigns();
    return () => {
      for (const end of ends) end();
    };
  }

  #stop(): void {
    this.#endFollowing?.();
    this.#endFollowing = undefined;
    this.#sign?.cancel();
  }

  #giveSigns(): void {
    this.#sign = this.#options.clock.after(
      SIGN_MS,
      () => {
        this.#tell(SIGN);
        this.#giveSigns();
      },
      { background: true },
    );
  }

  #tell(line: Uint8Array): void {
    for (const [outlet, limit] of this.#readers)
      if (outlet.waitingBytes + line.length <= limit) outlet.write(line);
      else this.#cut(outlet);
  }

  #cut(outlet: Outlet): void {
    this.leave(outlet);
    outlet.cut();
  }
}

function lineOf(news: PageNews): Buffer {
  return Buffer.from(`${JSON.stringify(news)}\n`);
}
