// The operators' calls about releases. The latest one is answered by the reactor, for it may move; earlier ones are over, and are read from
// the store.
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import { isUlid } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import { ReleaseAction } from "../../gen/rollout/v1/release_pb.ts";
import type { ReleaseService, SteerReleaseRequest } from "../../gen/rollout/v1/release_pb.ts";
import { RELEASES_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { peerOf } from "../../transport/caller.ts";
import { describeIdentity } from "../../transport/tls/identity.ts";
import type { ReleaseRefusal, ReleaseRequest, ReleaseSteering } from "../release/operator.ts";
import { refusalAtEnd } from "../release/operator.ts";
import { loadRelease } from "../release/replay-releases.ts";
import { isReleaseKey } from "../release/records.ts";
import type { Release } from "../release/release.ts";
import { isOver } from "../release/release.ts";
import { stageMessageOf, statusOf, summaryOf } from "../run/release-status.ts";
import type { ReleaseAnswer } from "../turn/input.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { untilNews } from "./news.ts";
import { readCandidate, readTerms } from "./release-messages.ts";

const PAGE = 1_000;
const NOBODY = { withCandidate: 0, ready: 0 };
const UNNAMED_REASON = "an operator said so";

export function releaseService(
  leader: Leader,
  store: Store,
  clock: Clock,
): ServiceImpl<typeof ReleaseService> {
  const { envelope: coordinator } = leader;
  /** One that is over, from the store. */
  const earlierOne = async (id: string): Promise<Release | undefined> => {
    const found = isUlid(id) ? await loadRelease(store, id) : undefined;
    return found !== undefined && isOver(found) ? found : undefined;
  };
  return {
    async createRelease(asked, context) {
      if (!isUlid(asked.release)) return refuse("CreateRelease", "release is no ULID");
      const request: ReleaseRequest = {
        ...{ id: asked.release, terms: readTerms(asked.spec), candidate: readCandidate(asked) },
        ...{ waits: asked.wait, isDryRun: asked.dryRun, by: nameOf(context) },
      };
      const answer = await ask(leader, { kind: "createRelease", request });
      if (answer.kind === "created") return { coordinator, created: answer.created };
      const earlier = await earlierOne(asked.release);
      if (earlier === undefined) return fail(answer);
      return { coordinator, created: createdOf(earlier) };
    },

    async getRelease(asked, { signal }) {
      await untilNews(leader, clock, asked, signal);
      const answer = await ask(leader, { kind: "getRelease", id: asked.release });
      if (answer.kind === "release") return { coordinator, release: answer.status, after: answer.after };
      const earlier = await earlierOne(asked.release);
      if (earlier === undefined) return fail(answer);
      return { coordinator, release: statusOfEarlier(earlier), after: "" };
    },

    async listReleases() {
      const ids = await idsOf(store);
      const found = await Promise.all(ids.map((id) => loadRelease(store, id)));
      return { coordinator, releases: found.flatMap((one) => (one === undefined ? [] : summaryOf(one))) };
    },

    async steerRelease(asked, context) {
      const question = {
        kind: "steerRelease",
        id: asked.release,
        by: nameOf(context),
        steering: readSteering(asked),
      } as const;
      const answer: ReleaseAnswer = await ask(leader, question);
      if (answer.kind === "release") return { coordinator, release: answer.status };
      const earlier = await earlierOne(asked.release);
      if (earlier === undefined) return fail(answer);
      const refusal = refusalAtEnd(earlier, question.steering);
      return refusal === undefined ? { coordinator, release: statusOfEarlier(earlier) } : fail(refusal);
    },
  };
}

function fail({ code, params }: ReleaseRefusal): never {
  throw new RolloutError(code, params);
}

function statusOfEarlier(earlier: Release): ReturnType<typeof statusOf> {
  return statusOf(earlier, { pending: undefined, crew: NOBODY });
}

/** By its certificate. */
function nameOf(context: Pick<HandlerContext, "values">): string {
  return describeIdentity(peerOf(context).identity);
}

function readSteering({ action, reason, stage }: SteerReleaseRequest): ReleaseSteering {
  if (Buffer.byteLength(reason) > LIMITS.itemTextBytes)
    return refuse("SteerRelease", `the reason is longer than ${LIMITS.itemTextBytes} bytes`);
  switch (action) {
    case ReleaseAction.PAUSE:
      return { action: "pause", reason: reason || UNNAMED_REASON };
    case ReleaseAction.ABORT:
      return { action: "abort", reason: reason || UNNAMED_REASON };
    case ReleaseAction.RESUME:
      return { action: "resume" };
    case ReleaseAction.PROMOTE:
      return stage > 0 ? { action: "promote", stage } : refuse("SteerRelease", "a promotion names no stage");
    default:
      return refuse("SteerRelease", "action is none that this version knows");
  }
}

/** One that has begun long ago: its id is answered once more. */
function createdOf({ id, plugin, stable, candidate, terms }: Release) {
  return {
    ...{ release: id, plugin, stableVersion: stable.version, candidateVersion: candidate.version },
    ...{ itemsLeft: 0, stages: terms.stages.map(stageMessageOf), workers: NOBODY },
    ...{ attemptsEnded: 0, attemptsFailed: 0 },
  };
}

/** The latest first. */
async function idsOf(store: Store): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of pagesUnder(store, RELEASES_PREFIX, PAGE))
    for (const { key } of page) if (isReleaseKey(key)) ids.push(key.slice(RELEASES_PREFIX.length));
  return ids.reverse();
}
