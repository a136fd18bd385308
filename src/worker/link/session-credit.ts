// The work that a worker has asked for in one session and not yet been given. Items that it holds and items that it has asked for
// together never exceed its room.

export class Credit {
  #outstanding = 0;

  /** Asked for, not given. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /**
   * How much to ask for now, which then counts as asked for: 0 when it is not worth a frame. `room` is for how many more
   * attempts there is room at all; unless the worker is `hungry`, less than `worthwhile` of it waits for more.
   */
  ask(room: number, worthwhile: number, hungry: boolean): number {
    const more = room - this.#outstanding;
    if (more <= 0 || (more < worthwhile && !hungry)) return 0;
    this.#outstanding += more;
    return more;
  }

  /** So many were given. False when so many were never asked for. */
  spend(given: number): boolean {
    if (given > this.#outstanding) return false;
    this.#outstanding -= given;
    return true;
  }
}
