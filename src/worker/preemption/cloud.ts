// Which cloud's notices are watched: as the configuration says, or that of the metadata server which answers, however late.
import { unreachable } from "../../base/assert.ts";
import { sleep } from "../../base/clock.ts";
import { AwsHints, ImdsSession } from "./aws.ts";
import type { Cloud, ComputeHint } from "./compute-hint.ts";
import { GcpHints, isGcp } from "./gcp.ts";
import type { MetadataWatchOptions } from "./metadata-http.ts";
import { MetadataPatience, PATIENCE_MAX_MS } from "./metadata-http.ts";

/** `auto`: whichever answers. */
export type CloudChoice = Cloud | "auto" | "none";

/** Local servers answer in milliseconds; where there is none, a question may hang. */
const PROBE_TIMEOUT_MS = 1_000;
/** A machine that starts may be quicker than its metadata server. */
const QUICK_PROBES = 3;
const QUICK_PAUSE_MS = 500;
/** From then on, for as long as the worker lives: such a server may be slow, or come later. */
const SLOW_PAUSE_MS = 30_000;

/** The hints of the cloud that is meant. Asks nothing before it is watched, so that no start waits for an answer. */
export function cloudHints(choice: CloudChoice, options: MetadataWatchOptions): ComputeHint {
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
          const found = await findCloud(options, signal);
          if (found !== undefined) await watchFound(found, options).watch(signal, onHint);
        },
      };
    default:
      return unreachable(choice, "cloud");
  }
}

interface Found {
  readonly cloud: Cloud;
  /** It was not there at first, or did not answer as quickly as such servers do. */
  readonly isSlow: boolean;
}

function watchFound({ cloud, isSlow }: Found, options: MetadataWatchOptions): ComputeHint {
  return cloud === "aws" ? new AwsHints({ ...options, isSlow }) : new GcpHints({ ...options, isSlow });
}

/**
 * The cloud whose metadata server answers, asked for until one does; undefined when the signal came first. That none answers yet
 * is said once.
 */
async function findCloud(options: MetadataWatchOptions, signal: AbortSignal): Promise<Found | undefined> {
  const { address, clock, log } = options;
  for (let probes = 1; ; probes++) {
    const isSlow = probes > QUICK_PROBES;
    const cloud = await askCloud(
      { ...options, timeoutMs: isSlow ? PATIENCE_MAX_MS : PROBE_TIMEOUT_MS },
      signal,
    );
    if (cloud !== undefined) {
      if (isSlow) log.info("a metadata server answers: watching for preemption notices", { cloud });
      else log.debug("watching for preemption notices", { cloud });
      return { cloud, isSlow };
    }
    if (signal.aborted) return undefined;
    if (probes === QUICK_PROBES)
      log.warn("no metadata server answers, so a preemption may come without notice; asking now and then", {
        address: `${address.host}:${address.port}`,
      });
    await sleep(clock, probes < QUICK_PROBES ? QUICK_PAUSE_MS : SLOW_PAUSE_MS, signal);
  }
}

/** The cloud whose metadata server answers within that time; undefined when none does. Logs nothing. */
export async function askCloud(
  {
    address,
    clock,
    timeoutMs,
  }: Pick<MetadataWatchOptions, "address" | "clock"> & { readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<Cloud | undefined> {
  const patience = new MetadataPatience(timeoutMs, false);
  const session = new ImdsSession({ address, clock, signal, patience, tokenTtlSec: 60 });
  const [gcp, aws] = await Promise.all([isGcp(address, timeoutMs, clock, signal), session.isThere()]);
  // Others imitate the server of EC2; none says that it is Google's.
  if (gcp) return "gcp";
  return aws ? "aws" : undefined;
}
