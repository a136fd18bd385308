// The hosts of one Postgres, tried in turn until one is the primary: a standby answers too, and would show what was. A server that
// may lose or tear what it has acknowledged is refused.
//
// Where a standby was promoted while the old primary lives on, both say that they are the primary, and the old one's commits wait for a
// standby that has left it. The higher timeline of one system counts: once it was met, connections to a lower one end, and none is made.
import type pg from "pg";
import { codeOf, describeError, failure, RolloutError } from "../../base/errors.ts";
import { formatAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import type { PostgresAddress } from "../../config/postgres-url.ts";
import type { Logger } from "../../observe/log.ts";
import { Connection } from "./connection.ts";
import type { ServerFacts } from "./connection.ts";
import { isHopeless } from "./outcomes.ts";

export interface HostsOptions {
  readonly address: PostgresAddress;
  readonly password: () => Promise<string | undefined>;
  /** Names the store in messages. */
  readonly location: string;
  readonly clock: Clock;
  readonly log: Logger;
}

type Host = PostgresAddress["hosts"][number];

export class Hosts {
  readonly location: string;
  readonly #options: HostsOptions;
  /** The one that was the primary last is asked first. */
  #first = 0;
  #facts: ServerFacts | undefined;
  /** The highest timeline that was met of each system. */
  readonly #newest = new Map<string, string>();
  readonly #open = new Set<Connection>();
  #looking: Promise<void> | undefined;

  constructor(options: HostsOptions) {
    this.#options = options;
    this.location = options.location;
  }

  /** As the server has them that answered last. */
  get facts(): ServerFacts | undefined {
    return this.#facts;
  }

  /** A connection to the primary. Throws store_unreachable, and store_unusable for what no waiting makes better. */
  async connect(): Promise<Connection> {
    const { hosts } = this.#options.address;
    const reasons: string[] = [];
    const refusals: Refusal[] = [];
    for (let tried = 0; tried < hosts.length; tried++) {
      const at = (this.#first + tried) % hosts.length;
      const host = hosts[at];
      if (host === undefined) continue;
      try {
        const connection = await this.#connectTo(host);
        this.#first = at;
        this.#facts = connection.facts;
        return connection;
      } catch (error) {
        // The primary itself, and no other host is a better one.
        if (error instanceof RolloutError && error.code === "store_unusable") throw error;
        if (error instanceof Refusal) refusals.push(error);
        reasons.push(`${formatAddress(host)}: ${reasonOf(error)}`);
      }
    }
    const [first] = refusals;
    if (first !== undefined && refusals.length === hosts.length) throw this.#refused(first);
    throw failure("store_unreachable", { path: this.location, reason: reasons.join("; ") });
  }

  /** Asks every host whether it was promoted over the one that is in use. For those whose commit is not answered. Never rejects. */
  lookForNewer(): Promise<void> {
    const { hosts } = this.#options.address;
    if (hosts.length < 2) return Promise.resolve();
    const looks = (): Promise<unknown> =>
      Promise.all(
        hosts.map((host) =>
          this.#connectTo(host).then(
            (connection) => connection.close(),
            () => undefined,
          ),
        ),
      );
    this.#looking ??= looks().then(() => (this.#looking = undefined));
    return this.#looking;
  }

  #refused({ message, advice }: Refusal): RolloutError {
    const { hosts } = this.#options.address;
    const who = hosts.map(formatAddress).join(", ");
    return failure("store_unusable", { path: this.location, reason: `${who}: ${message}`, advice });
  }

  /** Called where the server asks for one. */
  readonly #password = async (): Promise<string> => {
    const password = await this.#options.password();
    if (password === undefined || password === "") throw new Refusal("it asks for a password", PASSWORD);
    return password;
  };

  async #connectTo(host: Host): Promise<Connection> {
    const { address, clock, location: path } = this.#options;
    const { user, database, tls } = address;
    let connection: Connection;
    try {
      const onAnswer = (facts: ServerFacts): void => void (this.#facts = facts);
      const password = this.#password;
      connection = await Connection.open({ ...host, user, database, tls, password, clock, onAnswer });
    } catch (error) {
      if (error instanceof Refusal) throw error;
      if (isHopeless(error)) throw new Refusal(describeError(error), adviceFor(error));
      if (isUntrusted(error))
        throw new Refusal(`its certificate is not trusted: ${describeError(error)}`, CERTIFICATE);
      throw error;
    }
    const { inRecovery, readOnly, unsafe } = connection.facts;
    const isReplaced = !inRecovery && !this.#isNewest(connection.facts);
    if (!inRecovery && !readOnly && unsafe.length === 0 && !isReplaced) {
      this.#keep(connection);
      return connection;
    }
    connection.end();
    if (isReplaced) throw new Error("another host was promoted in its place");
    if (inRecovery) throw new Error("it is in recovery, as a standby is");
    if (readOnly) throw new Error("it takes no writes");
    throw failure("store_unusable", {
      path,
      reason: `${formatAddress(host)} runs with ${unsafe.map((name) => `${name} = off`).join(" and ")}, and a crash of it loses or tears what was acknowledged`,
      advice: `set ${unsafe.map((name) => `${name} = on`).join(" and ")} in its postgresql.conf, and reload it`,
    });
  }

  /** Ends connections to servers that this one was promoted over. */
  #keep(connection: Connection): void {
    this.#open.add(connection);
    for (const other of this.#open) {
      if (!other.isLost && !this.#isNewest(other.facts)) {
        this.#options.log.warn("another host was promoted in the place of the one in use", {
          from: other.facts.generation,
          to: connection.facts.generation,
        });
        other.end();
      }
      if (other.isLost) this.#open.delete(other);
    }
  }

  #isNewest({ system, timeline }: ServerFacts): boolean {
    const known = this.#newest.get(system) ?? "";
    if (timeline > known) this.#newest.set(system, timeline);
    return timeline >= known;
  }
}

/** A host that says no, and will say so again: a wrong password, a certificate that is not trusted. */
class Refusal extends Error {
  readonly advice: string;

  constructor(reason: string, advice: string) {
    super(reason);
    this.advice = advice;
  }
}

const CERTIFICATE =
  "name the CA of the server by `?sslrootcert=/FILE` in storage.url, and a host that its certificate names";
const PASSWORD = "name the file with the password by storage.password_file";

/** By the codes of Node and OpenSSL. */
const UNTRUSTED: ReadonlySet<string | undefined> = new Set([
  ...["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN", "UNABLE_TO_GET_ISSUER_CERT"],
  ...["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "UNABLE_TO_VERIFY_LEAF_SIGNATURE", "CERT_HAS_EXPIRED"],
  ...[
    "CERT_SIGNATURE_FAILURE",
    "CERT_UNTRUSTED",
    "CERT_REJECTED",
    "INVALID_CA",
    "ERR_TLS_CERT_ALTNAME_INVALID",
  ],
]);

function isUntrusted(error: unknown): boolean {
  return error instanceof Error && UNTRUSTED.has(codeOf(error));
}

const ADVICE: Readonly<Record<string, string>> = {
  "28": "correct the user in storage.url, and the password in storage.password_file",
  "3D": "create the database, or correct its name in storage.url",
  "42": "give this user the right: `GRANT CREATE ON DATABASE … TO …`",
};

/** Advice about an error that no waiting makes better. */
export function adviceFor(error: pg.DatabaseError): string {
  return ADVICE[(error.code ?? "").slice(0, 2)] ?? "see the server's log";
}

/** Where a name has several addresses, each failed for itself; the first tells enough. */
function reasonOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return describeError(first);
}
