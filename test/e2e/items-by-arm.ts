// Items for a release that runs, chosen by the arm that its id gives them: in every part of their order each stage has the share that it is
// to have, so no chance says how a stage goes.
import { itemIdOf } from "../../src/coordinator/ledger/place.ts";
import { isInShare, seedOf } from "../../src/coordinator/release/arms.ts";

/** An item in its turn: the candidate's from the stage of that index on; the number of stages: the old version's in all of them. */
export interface Turn<Kind> {
  readonly from: number;
  /** Undefined: any will do. */
  readonly kind?: Kind;
}

export interface ItemsByArm<Kind> {
  readonly release: string;
  /** Shares of the stages before the last one, growing. */
  readonly shares: readonly number[];
  /** The digest of the run's first task. */
  readonly taskDigest: Uint8Array;
  /** One after the other, over and over. */
  readonly turns: readonly Turn<Kind>[];
  readonly kindOf: (n: number) => Kind;
}

export interface ChosenItem {
  readonly n: number;
  /** As a result names it. */
  readonly id: string;
}

/** That many items `{"n":N}` in their order, each `n` at least `first`. */
export function itemsByArm<Kind>(
  { release, shares, taskDigest, turns, kindOf }: ItemsByArm<Kind>,
  { first, count }: { readonly first: number; readonly count: number },
): ChosenItem[] {
  const seed = seedOf(release);
  const itemAt = (n: number): ChosenItem & Turn<Kind> => {
    const payload = Buffer.from(JSON.stringify({ n }));
    const id = itemIdOf({ taskDigest, payload, key: "", sampleIndex: 0 });
    const from = shares.findIndex((share) => isInShare(id, seed, share));
    const named = { n, id: Buffer.from(id).toString("hex") };
    return { ...named, from: from === -1 ? shares.length : from, kind: kindOf(n) };
  };
  /** Passed over by turns that wanted others. */
  const left: (ChosenItem & Turn<Kind>)[] = [];
  let next = first;
  const take = (turn: Turn<Kind> | undefined): ChosenItem => {
    for (;;) {
      const at = left.findIndex(
        ({ from, kind }) => from === turn?.from && (turn.kind === undefined || kind === turn.kind),
      );
      const [taken] = at === -1 ? [] : left.splice(at, 1);
      if (taken !== undefined) return taken;
      left.push(itemAt(next++));
    }
  };
  return Array.from({ length: count }, (_, at) => take(turns[at % turns.length]));
}
