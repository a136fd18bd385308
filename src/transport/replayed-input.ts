// The messages of a stream that looks for the leader: what was sent to a coordinator that did not answer is sent to the next one.
// From the first answer on nothing is kept, and messages go through as they come.

/** More messages than ours send before they are answered. */
const KEPT_MAX = 64;

export class ReplayedInput<Message> {
  readonly #source: AsyncIterator<Message>;
  /** Read from the source; those before `#at` were sent to the coordinator of now. */
  #kept: Message[] = [];
  #at = 0;
  #isSettled = false;
  #attempt = 0;
  #end: IteratorResult<Message> | undefined;
  #reading: Promise<void> | undefined;

  constructor(source: AsyncIterable<Message>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Whether another coordinator can be sent all that there was. */
  get isWhole(): boolean {
    return !this.#isSettled;
  }

  /** All messages from the first one. The iteration before this one ends. */
  again(): AsyncIterable<Message> {
    const attempt = ++this.#attempt;
    this.#at = 0;
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => this.#next(attempt),
        return: () => this.#leave(attempt),
        throw: async (thrown: unknown) => {
          await this.#leave(attempt);
          throw thrown;
        },
      }),
    };
  }

  /** It was answered: nothing is kept for another coordinator. */
  settle(): void {
    this.#isSettled = true;
    this.#kept = this.#kept.slice(this.#at);
    this.#at = 0;
  }

  /** Nobody is sent anything any more. */
  end(): void {
    this.#attempt++;
    this.#source.return?.().catch(() => undefined);
  }

  async #next(attempt: number): Promise<IteratorResult<Message>> {
    for (;;) {
      if (attempt !== this.#attempt) return { done: true, value: undefined };
      const message = this.#kept[this.#at];
      if (message !== undefined) {
        if (this.#isSettled) this.#kept.shift();
        else this.#at++;
        return { done: false, value: message };
      }
      if (this.#end !== undefined) return this.#end;
      if (this.#isSettled && this.#reading === undefined) return this.#source.next();
      await (this.#reading ??= this.#read());
    }
  }

  /** One message more, for whichever attempt is the current one when it comes. */
  async #read(): Promise<void> {
    try {
      const result = await this.#source.next();
      if (result.done === true) this.#end = result;
      else this.#kept.push(result.value);
      if (this.#kept.length > KEPT_MAX) this.settle();
    } finally {
      this.#reading = undefined;
    }
  }

  async #leave(attempt: number): Promise<IteratorResult<Message>> {
    // Another coordinator may be sent the rest.
    if (attempt === this.#attempt && this.#isSettled) await this.#source.return?.();
    return { done: true, value: undefined };
  }
}
