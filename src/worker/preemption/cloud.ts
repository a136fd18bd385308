// Which cloud's notices are watched: as the configuration says, or that of the metadata server which answers.
import { unreachable } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Logger } from "../../observe/log.ts";
import { AwsHints } from "./aws.ts";
import type { Cloud, ComputeHint } from "./compute-hint.ts";
import { GcpHints, isGcp } from "./gcp.ts";
import { ImdsSession } from "./imds-session.ts";
import type { MetadataAddress } from "./metadata-http.ts";

/** `auto`: whichever answers. */
export type CloudChoice = Cloud | "auto" | "none";

export interface CloudOptions {
  readonly address: MetadataAddress;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Local servers answer in milliseconds; where there is none, a question may hang. */
const PROBE_TIMEOUT_MS = 1_000;
/** A machine that starts may be quicker than its metadata server. */
const PROBES_MAX = 3;
const PROBE_PAUSE_MS = 500;

/** The hints of the cloud that is meant. Asks nothing before it is watched, so that no start waits for an answer. */
export function cloudHints(choice: CloudChoice, options: CloudOptions): ComputeHint {
  switch (choice) {
    case "aws":
      return new AwsHints(options);
    case "gcp":
      return new GcpHints(options);
    case "none":
      return { watch: () => Promise.resolve() };
    case "auto":
      return {
        async watch(signal, onHint) {
          const cloud = await detectCloud(options, signal);
          if (signal.aborted) return;
          options.log.debug(
            cloud === undefined
              ? "no metadata server answers: no preemption notices"
              : "watching for preemption notices",
            cloud === undefined ? {} : { cloud },
          );
          await cloudHints(cloud ?? "none", options).watch(signal, onHint);
        },
      };
    default:
      return unreachable(choice, "cloud");
  }
}

/** The cloud whose metadata server answers; undefined, after some seconds, when none does. Logs nothing. */
async function detectCloud(
  { address, clock }: Pick<CloudOptions, "address" | "clock">,
  signal: AbortSignal,
): Promise<Cloud | undefined> {
  const timeoutMs = PROBE_TIMEOUT_MS;
  for (let probes = 1; probes <= PROBES_MAX && !signal.aborted; probes++) {
    const session = new ImdsSession({ address, clock, signal, timeoutMs, tokenTtlSec: 60 });
    const [gcp, aws] = await Promise.all([isGcp(address, timeoutMs, clock, signal), session.isThere()]);
    // Others imitate the server of EC2; none says that it is Google's.
    if (gcp) return "gcp";
    if (aws) return "aws";
    if (probes < PROBES_MAX) await sleep(clock, PROBE_PAUSE_MS, signal);
  }
  return undefined;
}
