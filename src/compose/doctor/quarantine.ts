// A row of the database that cannot be read, set aside because somebody has named it: the one thing that `doctor` changes.
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import type { RunId } from "../../base/ids.ts";
import { setAside } from "../../coordinator/quarantine/set-aside.ts";
import type { SetAside } from "../../coordinator/quarantine/set-aside.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { examineStoreIdentity } from "../../storage/store-identity.ts";
import { locationOf } from "../../storage/postgres/location.ts";
import { forgetFinished } from "../local-run/run-record.ts";
import { LOOKERS } from "../store-holders.ts";
import { openUnled } from "../unled-store.ts";
import type { UnledLook } from "../unled-store.ts";
import type { Finding } from "./finding.ts";
import { good } from "./finding.ts";

export interface Quarantine {
  readonly path: string;
  readonly runId: RunId;
  readonly key: string;
  readonly clock: Clock;
}

/** Throws store_… rows, store_held while a coordinator runs, and quarantine_refused for a row that is not set aside. */
export async function quarantine({ path, runId, key, clock }: Quarantine): Promise<readonly Finding[]> {
  const store = await openLevelStore({ path, holderName: LOOKERS.doctor, clock });
  try {
    if ((await examineStoreIdentity(store, runId)) === undefined) throw refusal(key, "the database is empty");
    await forgetFinished(path);
    return [good("quarantine", wordsOf(key, await setAside(store, key, clock.wallMs())))];
  } finally {
    await store.close();
  }
}

/** The same on a Postgres. Throws store_held while a coordinator leads. */
export async function quarantineUnled(look: UnledLook, key: string): Promise<readonly Finding[]> {
  const found = await openUnled(look);
  if (found.kind === "absent") throw refusal(key, "the database is empty");
  const path = locationOf({ ...look.storage, runId: look.runId });
  if (found.kind === "led") throw failure("store_held", { path, holder: found.holder });
  const { store } = found;
  try {
    if ((await examineStoreIdentity(store, look.runId)) === undefined)
      throw refusal(key, "the database is empty");
    return [good("quarantine", wordsOf(key, await setAside(store, key, look.clock.wallMs())))];
  } finally {
    await store.close();
  }
}

function wordsOf(key: string, outcome: SetAside): string {
  switch (outcome.kind) {
    case "aside":
      return outcome.place === null
        ? `${key} was set aside: no item loses its result by it`
        : `${key} was set aside, and the item that it was about with it`;
    case "known":
      return `${key} was set aside before`;
    case "absent":
      throw refusal(key, "there is no such row");
    case "whole":
      throw refusal(key, "nothing is wrong with it");
    case "vital":
      throw refusal(key, `nothing can take its place (${outcome.reason})`);
  }
}

function refusal(key: string, reason: string): Error {
  return failure("quarantine_refused", { key, reason });
}
