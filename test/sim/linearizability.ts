// A history of calls on something shared, and whether it is as if each call had taken effect at one moment between its call and
// its answer. The search of Wing and Gong, with Lowe's memory of positions that led nowhere.
//
// Keeps true: a call of which nobody knows the outcome may have taken effect at any time after it was made, or never. The search is
// complete: "stuck" means that no order explains the history.

/** Moments are numbers of one sequence for the whole history: of two, the lower one came first. */
export interface Call<Input, Output> {
  readonly input: Input;
  readonly calledAt: number;
  /** Undefined: nobody knows what became of it. */
  readonly answer: { readonly output: Output; readonly at: number } | undefined;
}

/** The thing as it would be if one call came after the other. */
export interface SequentialModel<State, Input, Output> {
  readonly initial: State;
  /** The states that the call may leave, when it is answered so; none: it cannot be. Without an output: it takes effect unseen. */
  step(state: State, input: Input, output: Output | undefined): readonly State[];
  /** Two states of one name are the same. */
  nameOf(state: State): string;
}

export type Finding =
  | { readonly kind: "linearizable" }
  /** The most that can be explained: so many answered calls, and those that cannot come next. */
  | {
      readonly kind: "stuck";
      readonly explained: number;
      readonly next: readonly number[];
      readonly state: string;
    };

/** A call, at a place in the order, and what it leaves. */
interface Choice<State> {
  readonly call: number;
  readonly state: State;
}

interface Depth<State> {
  readonly state: State;
  /** The first answered call that has no place yet. */
  readonly first: number;
  readonly choices: Choice<State>[];
}

/** `next` of what is stuck are indexes of `calls`. */
export function linearize<State, Input, Output>(
  calls: readonly Call<Input, Output>[],
  model: SequentialModel<State, Input, Output>,
): Finding {
  return new Search(calls, model).run();
}

class Search<State, Input, Output> {
  readonly #model: SequentialModel<State, Input, Output>;
  readonly #answered: readonly number[];
  readonly #unknown: readonly number[];
  readonly #calls: readonly Call<Input, Output>[];
  readonly #isPlaced: boolean[];
  readonly #order: number[] = [];
  readonly #tried = new Set<string>();
  #explained = 0;
  #mostExplained = -1;
  #stuck: Finding = { kind: "linearizable" };

  constructor(calls: readonly Call<Input, Output>[], model: SequentialModel<State, Input, Output>) {
    this.#calls = calls;
    this.#model = model;
    const inOrder = [...calls.keys()].sort((one, other) => this.#at(one).calledAt - this.#at(other).calledAt);
    this.#answered = inOrder.filter((index) => this.#at(index).answer !== undefined);
    this.#unknown = inOrder.filter((index) => this.#at(index).answer === undefined);
    this.#isPlaced = calls.map(() => false);
  }

  run(): Finding {
    const path: Depth<State>[] = [this.#open(this.#model.initial, 0)];
    for (let depth = path.at(-1); depth !== undefined; depth = path.at(-1)) {
      if (depth.first >= this.#answered.length) return { kind: "linearizable" };
      const choice = depth.choices.pop();
      if (choice === undefined) {
        path.pop();
        this.#takeBack();
        continue;
      }
      this.#isPlaced[choice.call] = true;
      this.#order.push(choice.call);
      if (this.#at(choice.call).answer !== undefined) this.#explained++;
      path.push(this.#open(choice.state, depth.first));
    }
    return this.#stuck;
  }

  #takeBack(): void {
    const undone = this.#order.pop();
    if (undone === undefined) return;
    this.#isPlaced[undone] = false;
    if (this.#at(undone).answer !== undefined) this.#explained--;
  }

  #open(state: State, from: number): Depth<State> {
    let first = from;
    while (first < this.#answered.length && this.#isPlaced[this.#answered[first] ?? 0] === true) first++;
    const name = this.#model.nameOf(state);
    const position = `${first} ${this.#ahead(first)} ${name}`;
    if (this.#tried.has(position)) return { state, first, choices: [] };
    this.#tried.add(position);
    const next = this.#next(first);
    const choices = next.flatMap((call) => {
      const { input, answer } = this.#at(call);
      return this.#model.step(state, input, answer?.output).map((left) => ({ call, state: left }));
    });
    if (this.#explained > this.#mostExplained) {
      this.#mostExplained = this.#explained;
      const answered = next.filter((call) => this.#at(call).answer !== undefined);
      this.#stuck = { kind: "stuck", explained: this.#explained, next: answered, state: name };
    }
    // The one that was called first is tried first: it is taken from the end.
    return { state, first, choices: choices.reverse() };
  }

  /** Calls that may come next: made before any of those that are left was answered. */
  #next(first: number): number[] {
    let endsAt = Infinity;
    const open: number[] = [];
    for (let at = first; at < this.#answered.length; at++) {
      const call = this.#answered[at] ?? 0;
      if (this.#at(call).calledAt > endsAt) break;
      if (this.#isPlaced[call] === true) continue;
      open.push(call);
      endsAt = Math.min(endsAt, this.#at(call).answer?.at ?? Infinity);
    }
    const unknown = this.#unknown.filter((call) => this.#isPlaced[call] !== true);
    return [...open, ...unknown].filter((call) => this.#at(call).calledAt < endsAt);
  }

  /** Calls that have a place and are not told by `first`: made before that one was answered, or of unknown outcome. */
  #ahead(first: number): string {
    const placed = this.#unknown.filter((call) => this.#isPlaced[call] === true);
    const endsAt = this.#answerOf(first);
    for (let at = first; at < this.#answered.length; at++) {
      const call = this.#answered[at] ?? 0;
      if (this.#at(call).calledAt > endsAt) break;
      if (this.#isPlaced[call] === true) placed.push(call);
    }
    return placed.join();
  }

  /** When the answered call at this place of their order was answered. */
  #answerOf(place: number): number {
    const call = this.#answered[place];
    return call === undefined ? Infinity : (this.#at(call).answer?.at ?? Infinity);
  }

  #at(index: number): Call<Input, Output> {
    const call = this.#calls[index];
    if (call === undefined) throw new Error(`there is no call ${index}`);
    return call;
  }
}
