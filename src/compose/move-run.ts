// The two ends of `rollout store copy`: where the run was, as the command names it, and where it goes, as the configuration does.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { failure } from "../base/errors.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import { parsePostgresUrl } from "../config/postgres-url.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { locationOf } from "../storage/postgres/location.ts";
import type { Store } from "../storage/store.ts";
import { copyStore } from "./copy-store.ts";
import type { Copied } from "./copy-store.ts";
import { openLedgerStore, storageName } from "./ledger-store.ts";
import type { LedgerPorts } from "./ledger-store.ts";
import { openUnled } from "./unled-store.ts";

export interface Move extends LedgerPorts {
  /** The coordinator's: names where the run goes. */
  readonly config: ResolvedConfig;
  /** A directory, or the URL of a Postgres. */
  readonly from: string;
  /** The file with the password for that URL. */
  readonly passwordFile: string | undefined;
  readonly tell: (sentence: string) => void;
  readonly signal: AbortSignal;
}

export interface Moved extends Copied {
  readonly from: string;
  readonly to: string;
}

const HOLDER = "rollout store copy";

/** Undefined when the signal came while the database was waited for. Throws store_… rows. */
export async function moveRun(move: Move): Promise<Moved | undefined> {
  const source = await openSource(move);
  try {
    const target = await openLedgerStore(move.config, { ...move, holderName: HOLDER });
    if (target === undefined) return undefined;
    try {
      const copied = await copyStore(source, target, move.config.runId);
      return { ...copied, from: source.location, to: storageName(move.config) };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function openSource({ config, from, passwordFile, clock, random, log }: Move): Promise<Store> {
  const advice = "name the directory, or the URL, of the database that the run has had so far";
  const url = parsePostgresUrl(from);
  if (url === undefined) {
    const isThere = await stat(join(from, "CURRENT")).then(
      () => true,
      () => false,
    );
    if (!isThere) throw failure("store_unusable", { path: from, reason: "there is no database", advice });
    return openLevelStore({ path: from, holderName: HOLDER, clock, log });
  }
  const { runId, coordinator } = config;
  const storage = { address: url.address, password: () => url.password, passwordFile };
  const ttlMs = coordinator.failoverThresholdMs;
  const found = await openUnled({ storage, runId, ttlMs, clock, random, log });
  if (found.kind === "free") return found.store;
  const path = locationOf({ ...storage, runId });
  if (found.kind === "led") throw failure("store_held", { path, holder: found.holder });
  throw failure("store_unusable", { path, reason: "there are no tables of this run", advice });
}
