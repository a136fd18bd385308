// Clusters that are broken in how they release: each is noticed.
import { createHash } from "node:crypto";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import type { Releases } from "../../src/coordinator/release/releases.ts";
import { RELEASES_PREFIX } from "../../src/storage/keys.ts";
import type { Entry, Store } from "../../src/storage/store.ts";
import { drawRelease } from "./release-settings.ts";
import type { ReleaseSettings } from "./release-settings.ts";
import type { Settings } from "./settings.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { Variant } from "./variant.ts";
import { committing } from "./variants.ts";

const FAULTS: Settings["faults"] = ["coordinator-kill", "worker-stop"];

/** A release that nobody stops and that decides soon, on workers that all have both versions. */
function released(drawn: Settings, parts: Partial<ReleaseSettings> = {}): Settings {
  const { spec, ...rest } = drawRelease(seededRandom(drawn.items));
  const [first] = spec.stages;
  const stages = [
    { ...first, kind: "items", share: 0.5, minItems: 3, minTimeMs: 0, maxItems: undefined },
  ] as const;
  const all = { ...stages[0], share: 1, minItems: 1 };
  const calm = { doings: [], oneVersion: 0, loadedVersions: 2, isAgain: false, beginsWithinMs: 100 };
  const metrics = [{ kind: "errors", maxWorse: 0.85 }] as const;
  const terms = { ...spec, onBreach: "rollback", stages: [...stages, all], metrics } as const;
  return {
    ...drawn,
    ...{ callers: 0, keys: 0, hasCheckpoints: false, faults: FAULTS, items: 60, faultEveryMs: 1_500 },
    kinds: { slow: 0.05 },
    steering: { pauses: false, retries: false, cancels: false },
    release: { ...rest, ...calm, badness: undefined, spec: terms, ...parts },
  };
}

/** Does something to the room of releases of each leader, once. */
function once(change: (releases: Releases) => void): (state: CoordinatorState) => void {
  const changed = new WeakSet<Releases>();
  return ({ releases }) => {
    if (changed.has(releases)) return;
    changed.add(releases);
    change(releases);
  };
}

/** Each step that the streaming promoter asks for is done at once. */
function believing(releases: Releases): void {
  const before = releases.beforeDispatch.bind(releases);
  releases.beforeDispatch = (turn, facts, isRunOver) => {
    const ask = turn.ask.bind(turn);
    const asked = new Set<string>();
    turn.ask = (question) => {
      if (question.kind === "confirmLeadership") asked.add(question.kind);
      else ask(question);
    };
    before(turn, facts, isRunOver);
    turn.ask = ask;
    if (asked.size > 0) releases.onLeadershipConfirmed(turn, true, facts);
  };
}

/** Counts come with the next batch. */
function countingLate(store: Store): Store {
  let late: Entry[] = [];
  return committing((batch, commit) => {
    const isCount = ({ key }: Entry): boolean => key.startsWith(RELEASES_PREFIX) && key.includes("/counts/");
    const puts = [...late, ...batch.puts.filter((entry) => !isCount(entry))];
    late = batch.puts.filter(isCount);
    return commit({ ...batch, puts });
  })(store);
}

export const RELEASE_VARIANTS: readonly Variant[] = [
  {
    name: "a verdict acts that has not asked whether its coordinator leads",
    settings: (drawn) => released(drawn),
    noticedAs: /R3/,
    inspect: once(believing),
  },
  {
    name: "a stage ends without its row",
    settings: (drawn) => released(drawn),
    noticedAs: /R4/,
    coordinatorStore: committing((batch, commit) =>
      commit({ ...batch, expect: batch.expect.filter(({ key }) => !key.startsWith(RELEASES_PREFIX)) }),
    ),
  },
  {
    name: "a trial is charged",
    settings: (drawn) => released(drawn, { badness: "errs" }),
    noticedAs: /V3/,
    inspect: ({ ledger }) => {
      for (const item of ledger.running.values())
        if (item.row.context.trial !== "")
          item.row = { ...item.row, context: { ...item.row.context, trial: "" } };
    },
  },
  {
    name: "the arm of an item is left to chance",
    settings: (drawn) => released(drawn),
    noticedAs: /R5/,
    inspect: once((releases) => {
      let drawn = 0;
      releases.armOf = (desk) => {
        if (desk === "none") return desk;
        const digest = createHash("sha256").update(`${drawn++}`).digest();
        return digest.readUInt8() < 128 ? "candidate" : "stable";
      };
    }),
  },
  {
    name: "counts are not in the batch of what they count",
    settings: (drawn) => released(drawn),
    noticedAs: /R2/,
    coordinatorStore: countingLate,
  },
];
