// The work that a worker has asked for in one session and not yet been given. Items that it holds and items that it has asked for
// together never exceed its room, but by those that were on their way when it asked for less.

export class Credit {
  /** The number of the last assignment that was given. */
  #given: number;
  /** That of the last one that is wanted. Lower than `#given` where more had been wanted before. */
  #wanted: number;
  /** Beyond this none was ever asked for. */
  #asked: number;

  /** `given`: the number of the last assignment before this session. */
  constructor(given: number) {
    this.#given = given;
    this.#wanted = given;
    this.#asked = given;
  }

  /** Asked for, not given. */
  get outstanding(): number {
    return Math.max(0, this.#wanted - this.#given);
  }

  /** The number of the last assignment that is wanted. */
  get upTo(): number {
    return Math.max(this.#wanted, this.#given);
  }

  /**
   * How much to ask for now, which then counts as asked for: 0 when it is not worth a frame. `room` is for how many more
   * attempts there is room at all; unless the worker is `hungry`, less than `worthwhile` of it waits for more.
   */
  ask(room: number, worthwhile: number, hungry: boolean): number {
    const more = this.#worthAsking(room, worthwhile, hungry);
    if (more === 0) return 0;
    this.#wanted = this.#given + room;
    this.#asked += more;
    return more;
  }

  /** Whether `ask` would ask for anything. */
  mayAsk(room: number, worthwhile: number, hungry: boolean): boolean {
    return this.#worthAsking(room, worthwhile, hungry) > 0;
  }

  /** There is no room for more than this. False when no more was asked for. */
  lower(room: number): boolean {
    if (this.outstanding <= room) return false;
    this.#wanted = this.#given + room;
    return true;
  }

  /** So many were given. False when so many were never asked for. */
  spend(given: number): boolean {
    if (this.#given + given > this.#asked) return false;
    this.#given += given;
    return true;
  }

  #worthAsking(room: number, worthwhile: number, hungry: boolean): number {
    const more = room - this.outstanding;
    return more <= 0 || (more < worthwhile && !hungry) ? 0 : more;
  }
}
