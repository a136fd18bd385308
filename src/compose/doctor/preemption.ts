// The metadata server that says when this machine is taken away: asked as a worker of this machine asks it.
import type { Clock } from "../../base/clock.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { askCloud } from "../../worker/preemption/cloud.ts";
import { PATIENCE_MAX_MS } from "../../worker/preemption/metadata-trouble.ts";
import { metadataAddress } from "../metadata-address.ts";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";

const SUBJECT = "preemption notices";
/** A worker hears one that is slower as well, and a notice that much later. */
const QUICK_MS = 1_000;

/** Throws config_invalid_value for an address that no worker would ask. */
export async function examinePreemption(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const { preemption: choice, metadataAddr } = config.worker;
  if (choice === "none") return [];
  const address = metadataAddress(config);
  const startMs = clock.monotonicMs();
  const { signal } = new AbortController();
  const cloud = await askCloud({ address, clock, timeoutMs: PATIENCE_MAX_MS }, signal);
  const tookMs = Math.ceil(clock.monotonicMs() - startMs);
  if (cloud === undefined) {
    const detail = `no metadata server answers at ${metadataAddr} within ${PATIENCE_MAX_MS} ms`;
    return [warning(SUBJECT, detail, 'set worker.preemption = "none" where no cloud takes machines away')];
  }
  const detail = `the metadata server of ${cloud} answers at ${metadataAddr} within ${tookMs} ms`;
  if (choice !== "auto" && choice !== cloud)
    return [warning(SUBJECT, detail, `set worker.preemption = "${cloud}", or "auto"`)];
  if (tookMs <= QUICK_MS) return [good(SUBJECT, detail)];
  return [warning(SUBJECT, detail, "a notice is heard that much later: see what keeps that server busy")];
}
