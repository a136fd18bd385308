// The certificate that the coordinator shows: one of the development CA, which is made at the first start and renewed here, or
// one from files of the user's own CA, which are read again when they change. Either way without a restart.
import type { Clock, Timer } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { RunId, WorkerId } from "../base/ids.ts";
import { parseAddress } from "../base/address.ts";
import type { ResolvedConfig } from "../config/resolve.ts";
import type { SignWorkerRequest } from "../coordinator/rpc/enrolment-service.ts";
import { claimAuthority, readAuthority } from "../coordinator/lead/authority-record.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import {
  authorityFingerprint,
  fingerprintOf,
  openAuthority,
  removeAuthority,
} from "../transport/tls/authority.ts";
import type { AuthorityOptions, OpenedAuthority } from "../transport/tls/authority.ts";
import { issueBundle } from "../transport/tls/bundle.ts";
import { LIFETIMES } from "../transport/tls/lifetimes.ts";
import { loadCredentials } from "../transport/tls/credential-files.ts";
import { keepHostCredentials } from "../transport/tls/host-credentials.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import type { ProcessPorts } from "./process-ports.ts";

/** How often certificates are looked after; each has weeks left when it is renewed. */
const LOOK_EVERY_MS = 60_000;
/** The bundle of an allocation is used when its machine comes: days later where it has waited in a queue. */
const ALLOCATION_BUNDLE_MS = 7 * 86_400_000;

export interface ServerIdentity {
  readonly credentials: Credentials;
  /** The CA's file, when this start made it. */
  readonly createdCaFile: string | undefined;
  readonly signWorkerRequest: SignWorkerRequest | undefined;
  /** A bundle of that id by which one worker joins; null where the certificates of the run come from elsewhere. */
  readonly issueEnrolment: (id: string, coordinatorAddr: readonly string[]) => Promise<string | null>;
  /** Whether the bundle of this id is the one that is renewed here. */
  readonly isOwnBundle: (id: string) => boolean;
  /** Credentials of these bearers are good for nothing now: those that this host needs are made anew for others. */
  readonly replace: (ids: readonly string[]) => void;
  /** Hands every newer certificate to `use`, until `stop`. The returned function looks for one at once. */
  keepFresh(use: (credentials: Credentials) => void): () => void;
  stop(): void;
}

type Reload = () => Promise<Credentials>;

/** Throws tls_… rows, and other_authority where the store is of a run with another CA. */
export async function openServerIdentity(
  config: ResolvedConfig,
  ports: ProcessPorts,
  store: Store,
): Promise<ServerIdentity> {
  const { clock, random, log } = ports;
  const { certificates, tlsDir, advertisedNames, advertisedAddr, listenAddr } = config.transport;
  const { runId } = config;
  if (certificates !== undefined) {
    const reload: Reload = async () =>
      (await loadCredentials(certificates, { runId, roles: ["coordinator"] }, clock)).credentials;
    return {
      ...freshness(await reload(), reload, clock, log),
      createdCaFile: undefined,
      signWorkerRequest: undefined,
      issueEnrolment: () => Promise.resolve(null),
      isOwnBundle: () => false,
      replace: () => undefined,
    };
  }
  const lifetimes = { ...LIFETIMES, enrolmentMs: config.enrolment.lifetimeMs };
  const { authority, created, caFile } = await openRunAuthority(
    { tlsDir, clock, random, lifetimes },
    store,
    runId,
  );
  const hosts = coordinatorNames([listenAddr, advertisedAddr], advertisedNames);
  const coordinatorAddr = config.worker.coordinatorAddr;
  const revoked = new Set<string>();
  let ownBundle: string | undefined;
  const reload: Reload = async () => {
    const isRevoked = (id: string): boolean => revoked.has(id);
    const parts = { authority, tlsDir, runId, hosts, coordinatorAddr, isRevoked, clock, random };
    const { coordinator, enrolmentId } = await keepHostCredentials(parts);
    ownBundle = enrolmentId;
    return coordinator;
  };
  return {
    ...freshness(await reload(), reload, clock, log),
    createdCaFile: created ? caFile : undefined,
    signWorkerRequest: (csr, workerId: WorkerId) =>
      authority.signWorkerRequest(csr, runId satisfies RunId, workerId),
    issueEnrolment: (id, addresses) =>
      issueBundle(authority, {
        identity: { runId, role: "enrolment", id },
        coordinatorAddr: addresses,
        lifetimeMs: Math.min(config.enrolment.lifetimeMs, ALLOCATION_BUNDLE_MS),
      }),
    isOwnBundle: (id) => id === ownBundle,
    replace: (ids) => {
      if (ids.length === 0) return;
      for (const id of ids) revoked.add(id);
      // The coordinator's own certificate is nobody's who calls it, so it is never among them.
      reload().catch((err: unknown) =>
        log.error("what was revoked cannot be replaced on this machine", { err }),
      );
    },
  };
}

/**
 * The CA of the directory, which is the one that the store has. One is made where neither has any. Coordinators that share a store
 * agree on theirs in it; without others there is nothing to agree on, and who wants another CA may have it.
 */
async function openRunAuthority(
  options: AuthorityOptions,
  store: Store,
  runId: RunId,
): Promise<OpenedAuthority> {
  const { tlsDir, clock, random } = options;
  const known = await readAuthority(store);
  const found = await authorityFingerprint(tlsDir);
  if (known !== undefined && known !== found) throw otherAuthority(tlsDir, found, known);
  const opened = await openAuthority(options);
  if (known !== undefined || !store.supports.multiProcess) return opened;
  const own = fingerprintOf(opened.authority.certificatePem);
  const kept = await claimAuthority(store, { runId, clock, random }, own);
  if (kept === own) return opened;
  if (opened.created) await removeAuthority(tlsDir);
  throw otherAuthority(tlsDir, opened.created ? undefined : own, kept);
}

function otherAuthority(directory: string, found: string | undefined, fingerprint: string): RolloutError {
  const here = found === undefined ? `there is no CA in ${directory}` : `the CA in ${directory} is ${found}`;
  return failure("other_authority", { found: here, fingerprint, directory });
}

function freshness(
  first: Credentials,
  reload: Reload,
  clock: Clock,
  log: Logger,
): Pick<ServerIdentity, "credentials" | "keepFresh" | "stop"> {
  let current = first;
  let timer: Timer | undefined;
  const look = async (use: (credentials: Credentials) => void): Promise<boolean> => {
    try {
      const found = await reload();
      if (found.certificatePem === current.certificatePem && found.caPem === current.caPem) return false;
      current = found;
      use(found);
      log.info("the coordinator's certificate was renewed");
    } catch (err) {
      log.error("the coordinator's certificate cannot be renewed; the old one stays in use", { err });
    }
    return true;
  };
  const keepFresh = (use: (credentials: Credentials) => void): (() => void) => {
    const arm = (): void => {
      timer = clock.after(LOOK_EVERY_MS, () => void look(use).then(() => timer && arm()), {
        background: true,
      });
    };
    arm();
    return () =>
      void look(use).then((hasNews) => {
        if (!hasNews) log.info("the coordinator's certificate is the one in use");
      });
  };
  return {
    credentials: first,
    keepFresh,
    stop: () => {
      timer?.cancel();
      timer = undefined;
    },
  };
}

/** By which names the certificate of a coordinator may be met that listens and is reached there. */
export function coordinatorNames(addresses: readonly string[], advertisedNames: readonly string[]): string[] {
  const hosts = addresses.flatMap((address) => parseAddress(address)?.host ?? []);
  const named = hosts.filter((host) => host !== "0.0.0.0" && host !== "::");
  return [...new Set(["localhost", "127.0.0.1", ...named, ...advertisedNames])];
}
