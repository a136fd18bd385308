// The run and its releases: what the room of releases is told of the run, in each turn in which it has something to do, and what operators
// ask of it.
import type { CreatedRelease, ReleaseSummary } from "../../gen/rollout/v1/release_pb.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { CreatedReleaseAnswer, Input, ReleaseAnswer } from "../turn/input.ts";
import { createRelease, idShown, steerRelease } from "../release/operator.ts";
import type { RunFacts } from "../release/ports.ts";
import type { Release } from "../release/release.ts";
import { currentStage, isOver as isReleaseOver } from "../release/release.ts";
import { isOfUse, trustedOf } from "../turn/state.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { recallTrials } from "../schedule/recall.ts";
import { stageMessageOf, statusOf, summaryOf } from "./release-status.ts";
import { isOver, newsMark } from "./run-status.ts";
import { meaningOf } from "./run.ts";

type Kind = "createRelease" | "steerRelease" | "getRelease" | "leadershipConfirmed" | "releaseCountsRead";
type ReleaseInput = Extract<Input, { readonly kind: Kind }>;

export function onRelease(state: CoordinatorState, turn: Turn, input: ReleaseInput): void {
  const { releases } = state;
  const facts = (): RunFacts => factsOf(state);
  switch (input.kind) {
    case "createRelease":
      return turn.answer(input.answer, create(state, turn, input));
    case "steerRelease": {
      const verdict = steerRelease(turn, releases, input, facts);
      return turn.answer(
        input.answer,
        verdict.kind === "refused" ? verdict : answerOf(state, turn, verdict.release),
      );
    }
    case "getRelease": {
      const { latest } = releases;
      const isIt = latest !== undefined && (input.id === "" || input.id === latest.id);
      const unknown = {
        kind: "refused",
        code: "release_unknown",
        params: { release: idShown(input.id) },
      } as const;
      return turn.answer(input.answer, isIt ? answerOf(state, turn, latest) : unknown);
    }
    case "leadershipConfirmed":
      return releases.onLeadershipConfirmed(turn, input.leads, facts);
    case "releaseCountsRead": {
      const damage = releases.onCountsRead(turn, input, facts);
      if (damage !== undefined) turn.foundDamage(damage);
    }
  }
}

/** Before items are given out: what the turn has judged may end a stage, and then it is given out otherwise. */
export function judgeReleases(state: CoordinatorState, turn: Turn): void {
  const { releases } = state;
  if (releases.isLive) releases.beforeDispatch(turn, () => factsOf(state), isOver(state));
  if (turn.hasRecalledTrials) recallTrials(state, turn);
}

/** At each scan. */
export function lookAtReleases(state: CoordinatorState, turn: Turn): void {
  if (state.releases.isLive) state.releases.onTick(turn, factsOf(state));
}

function create(
  state: CoordinatorState,
  turn: Turn,
  { request }: Extract<ReleaseInput, { readonly kind: "createRelease" }>,
): CreatedReleaseAnswer {
  const facts = factsOf(state);
  const verdict = createRelease(turn, state.releases, request, facts);
  if (verdict.kind === "refused") return verdict;
  const { id, plugin, stable, candidate, terms } = verdict.release;
  return {
    kind: "created",
    created: {
      ...{ release: id, plugin, stableVersion: stable.version, candidateVersion: candidate.version },
      ...{ itemsLeft: facts.itemsLeft, stages: terms.stages.map(stageMessageOf) },
      workers: { withCandidate: countAble(facts, verdict.release), ready: facts.ready.length },
      ...attemptsOf(state),
    },
  };
}

function countAble({ ready }: RunFacts, { plugin, candidate }: Release): number {
  return ready.filter(({ plugins }) =>
    plugins.some(({ name, version }) => name === plugin && version === candidate.version),
  ).length;
}

function attemptsOf({
  ledger: { meter },
}: CoordinatorState): Pick<Filled<CreatedRelease>, "attemptsEnded" | "attemptsFailed"> {
  const { success, error, timeout, crash, crash_shared: shared, too_large: large } = meter.attemptsEnded;
  const attemptsFailed = error + timeout + crash + shared + large;
  return { attemptsEnded: success + attemptsFailed, attemptsFailed };
}

function answerOf(state: CoordinatorState, turn: Turn, release: Release): ReleaseAnswer {
  const { releases, news, epoch } = state;
  const facts = factsOf(state);
  const pending = pendingOf(state, turn, { release, facts });
  return {
    kind: "release",
    status: statusOf(release, { pending, crew: releases.crewOf(facts) }),
    after: newsMark(epoch, news),
  };
}

/** The release that began last, for those who look at the run. */
export function releaseOf(state: CoordinatorState, turn: Turn): Filled<ReleaseSummary> | undefined {
  const { latest } = state.releases;
  return latest && summaryOf(latest, pendingOf(state, turn, { release: latest, facts: factsOf(state) }));
}

/** The thing that the current stage waits for; undefined where it waits for nothing. */
function pendingOf(
  { releases }: CoordinatorState,
  turn: Turn,
  { release, facts }: { readonly release: Release; readonly facts: RunFacts },
): string | undefined {
  if (isReleaseOver(release) || currentStage(release).number === release.stages.length) return undefined;
  return releases.verdictNow(turn, () => facts)?.reason;
}

function factsOf(state: CoordinatorState): RunFacts {
  const { task, ledger, keys, workers } = state;
  const { tally } = ledger;
  const itemsLeft = tally.pending + tally.count("running");
  return {
    plugin: task?.plugin ?? "",
    digest: task?.digest,
    isOver: meaningOf(state).phase === "cancelled" || meaningOf(state).phase === "complete",
    isSealed: meaningOf(state).phase !== "open",
    itemsLeft,
    itemsWithoutKey: itemsLeft - (keys.isInUse ? keys.counts.items : 0),
    ready: trustedOf([...workers.values()].filter((row) => isOfUse(state, row))),
  };
}
