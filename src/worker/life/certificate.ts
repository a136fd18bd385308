// Keeps the worker's certificate valid for as long as the worker lives: enrols when there is none, renews at half of its
// life, enrols again when it was refused. Each new one is on the worker's disk before it is used. The private key is made here and
// never leaves; a certificate is taken from a leader that this worker would obey, and from no other.
import { createClient } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import type { Clock, Timer } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { showAddresses } from "../../base/address.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import { ulidToBytes } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { EnrolmentService } from "../../gen/rollout/v1/enrolment_pb.ts";
import type { Logger } from "../../observe/log.ts";
import type { Store } from "../../storage/store.ts";
import { openClient } from "../../transport/client.ts";
import { pemBlock } from "../../transport/tls/certificate-making.ts";
import type { CertificateRequest } from "../../transport/tls/certificate-request.ts";
import { makeCertificateRequest } from "../../transport/tls/certificate-request.ts";
import type { Credentials } from "../../transport/tls/identity.ts";
import type { EpochGuard, Admission } from "../link/epoch-guard.ts";
import type { Setback } from "../link/reconnect.ts";
import { absenceAfterMs, retryDelayMs, Trouble } from "../link/reconnect.ts";
import type { OwnCredentials } from "./worker-records.ts";
import { keptRequest, readOwnCredentials, writeOwnCredentials, writeRevoked } from "./worker-records.ts";

export interface CertificateOptions {
  readonly address: string | readonly string[];
  readonly runId: RunId;
  readonly workerId: WorkerId;
  readonly store: Store;
  readonly guard: Pick<EpochGuard, "admit">;
  /** Reads what lets a new worker in. Read at each need: it may have been replaced meanwhile. */
  readonly enrolment: () => Promise<Credentials>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onRenewed: (credentials: Credentials) => void;
  readonly failureTimeoutMs: number;
  /** No coordinator was reached for so long. */
  readonly onAbsent?: (forMs: number) => void;
  /** The worker's store is broken, or the program is wrong: the process has to end. */
  readonly onFatal: (error: unknown) => void;
}

/** How many failure timeouts an id is waited for that somebody has who is alive. */
const TAKEOVER_FACTOR = 3;

/** A listener that goes down may look like a refusal once. */
const REFUSALS_MAX = 2;

/** The share of its lifetime after which a certificate is renewed: days of trouble fit into the rest. */
const RENEW_AFTER = 0.5;

type SigningAnswer =
  | { readonly kind: "signed"; readonly own: OwnCredentials }
  | Extract<Admission, { readonly kind: "refused" }>;

/** As a coordinator of 0.1 answers. */
const NAMES_NO_EPOCH =
  "it names no epoch, as rollout 0.1 does: the coordinator has to be upgraded before its workers";

/** With what a new certificate is asked for: the one that there is, or what lets a new worker in. */
type Bearer = "own" | "bundle";

export class Certificate {
  readonly #options: CertificateOptions;
  readonly #ending = new AbortController();
  #own: OwnCredentials | undefined;
  #renewal: Timer | undefined;
  #asking: Promise<Credentials | undefined> | undefined;

  constructor(options: CertificateOptions) {
    this.#options = options;
  }

  /** The certificate on disk. Throws tls_file_… when there is none and nothing to enrol with either. */
  async load(): Promise<void> {
    this.#own = await readOwnCredentials(this.#options.store);
    if (this.#own === undefined) await this.#options.enrolment();
  }

  /** The certificate of `load`, or a new one: waits for a coordinator as long as it takes. Undefined when stopped meanwhile. */
  async obtain(): Promise<Credentials | undefined> {
    if (this.#own === undefined) return this.#ask("bundle");
    this.#armRenewal(this.#own);
    return this.#own.credentials;
  }

  /** The coordinator and this certificate do not go together any more: a new one is asked for with the enrolment bundle. */
  replace(): void {
    this.#ask("bundle").catch(this.#options.onFatal);
  }

  async stop(): Promise<void> {
    this.#renewal?.cancel();
    this.#ending.abort();
    await this.#asking;
  }

  #armRenewal({ renewAtWallMs }: OwnCredentials): void {
    const { clock, onFatal } = this.#options;
    const renew = (): void => void this.#ask("own").catch(onFatal);
    this.#renewal?.cancel();
    this.#renewal = clock.after(renewAtWallMs - clock.wallMs(), renew, { background: true });
  }

  /** One request at a time; who asks meanwhile gets the same answer. */
  #ask(bearer: Bearer): Promise<Credentials | undefined> {
    this.#asking ??= this.#askUntilSigned(bearer).finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #askUntilSigned(first: Bearer): Promise<Credentials | undefined> {
    const { clock, random, log, onRenewed } = this.#options;
    const { signal } = this.#ending;
    const isStopped = (): boolean => signal.aborted;
    const { failureTimeoutMs, onAbsent } = this.#options;
    const address = showAddresses(this.#options.address);
    const afterMs = absenceAfterMs(failureTimeoutMs);
    const trouble = new Trouble(log, { clock, address, afterMs, onAbsent });
    let bearer = first;
    let aliveFromMs: number | undefined;
    let refusals = 0;
    let bundle = "enrolment";
    for (let failures = 1; !isStopped(); failures++) {
      const answer = await this.#request(bearer).catch(async (error: unknown) => this.#setbackOf(error));
      if (answer.kind === "signed") {
        const { own } = answer;
        trouble.over();
        this.#own = own;
        this.#armRenewal(own);
        onRenewed(own.credentials);
        return own.credentials;
      }
      if (isStopped()) return undefined;
      if (answer.kind === "failed" && answer.error.code === "worker_alive") {
        aliveFromMs ??= clock.monotonicMs();
        // The process before this one, if it has died without a word, would have failed by now: it is somebody else.
        if (clock.monotonicMs() - aliveFromMs > TAKEOVER_FACTOR * failureTimeoutMs) throw answer.error;
      }
      refusals = answer.kind === "failed" && answer.error.code === "certificate_refused" ? refusals + 1 : 0;
      if (answer.kind === "failed" && refusals > 0) {
        const hasOwn = this.#own !== undefined;
        if (bearer === "bundle" || !hasOwn) bundle = answer.error.params["subject"] ?? bundle;
        // Each of those that there are was refused on one connection after the other.
        if (refusals === REFUSALS_MAX * (hasOwn ? 2 : 1))
          throw allRefused({ address, bundle, hasOwn }, answer.error);
      }
      // Neither is given up for one refusal: it may end, and a bundle may be put there meanwhile.
      if (answer.kind === "failed" && answer.error.row.retry === "never")
        bearer = bearer === "own" ? "bundle" : "own";
      trouble.report(answer);
      await sleep(clock, retryDelayMs(answer, failures, random), signal);
    }
    return undefined;
  }

  /** Throws what there is no use in trying again. */
  async #setbackOf(error: unknown): Promise<Extract<Setback, { kind: "failed" }>> {
    if (!(error instanceof RolloutError) || error.code === "store_write_failed") throw error;
    if (error.code === "certificate_revoked") {
      const { store, clock, workerId } = this.#options;
      // Never taken back. Where a bundle is revoked while it asks, the answer says nothing about this worker.
      if (error.params["who"] === `worker ${workerId}`) await writeRevoked(store, clock);
      throw error;
    }
    // The coordinator was asked and said no: there is nothing to go on with, and nothing to wait for.
    const isFinal = error.code === "enrolment_refused" && this.#own === undefined;
    if (isFinal && !this.#ending.signal.aborted) throw error;
    return { kind: "failed", error };
  }

  /** A new certificate, on disk. */
  async #request(bearer: Bearer): Promise<SigningAnswer> {
    const { address, runId, store, enrolment, clock, random, log } = this.#options;
    const own = bearer === "own" ? this.#own?.credentials : undefined;
    const credentials = own ?? (await enrolment());
    // A bundle may be good for one request, and an answer may be lost; the worker's own certificate is for a new key each time.
    const asked = await (own === undefined
      ? keptRequest(store, makeCertificateRequest)
      : makeCertificateRequest());
    const connection = openClient({ address, runId, credentials, clock, random, log });
    try {
      const client = createClient(EnrolmentService, connection.transport);
      const answer = await this.#sign(client, asked, credentials.caPem);
      if (answer.kind === "signed") await writeOwnCredentials(store, answer.own);
      return answer;
    } finally {
      connection.close();
    }
  }

  /** Throws the call's errors: enrolment_refused, permission_denied, interrupted, or that the coordinator is out of reach. */
  async #sign(
    client: Client<typeof EnrolmentService>,
    { csr, keyPem }: CertificateRequest,
    caPem: string,
  ): Promise<SigningAnswer> {
    const { workerId, guard, clock } = this.#options;
    const { signal } = this.#ending;
    const answer = await client.signWorkerCertificate({ workerId: ulidToBytes(workerId), csr }, { signal });
    if (answer.coordinator === undefined) return { kind: "refused", reason: NAMES_NO_EPOCH };
    const admission = await guard.admit(answer.coordinator);
    if (admission.kind === "refused") return admission;
    const own = {
      credentials: { certificatePem: pemBlock("CERTIFICATE", answer.certificate), keyPem, caPem },
      renewAtWallMs: clock.wallMs() + Number(answer.validForMs) * RENEW_AFTER,
    };
    return { kind: "signed", own };
  }
}

interface Refused {
  readonly address: string;
  /** The bearer of the bundle. */
  readonly bundle: string;
  readonly hasOwn: boolean;
}

function allRefused({ address, bundle, hasOwn }: Refused, error: RolloutError): RolloutError {
  const reason = hasOwn
    ? `it refuses this worker's certificate and that of the bundle (${bundle}): they were revoked, have expired or are not of its CA`
    : `it refuses the certificate of the bundle (${bundle}), which was revoked or is not of its CA`;
  return failure("enrolment_refused", { address, reason }, error);
}
