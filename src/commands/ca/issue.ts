// `rollout ca issue`
import { lstat } from "node:fs/promises";
import { systemClock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import { newUlid, parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { isLoopback, parseAddress } from "../../base/address.ts";
import { BaseCommand } from "../../cli/base-command.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlagsFor } from "../../cli/setting-flags.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { openExistingAuthority } from "../../transport/tls/authority.ts";
import { LIFETIMES } from "../../transport/tls/lifetimes.ts";
import { issueBundle } from "../../transport/tls/bundle.ts";
import { replaceFile, SECRET_MODE } from "../../transport/tls/credential-files.ts";
import type { Role } from "../../transport/tls/identity.ts";

const ROLES = ["enrolment", "operator", "worker", "coordinator"] as const satisfies readonly Role[];

export class CaIssue extends BaseCommand {
  static override readonly summary = "Make credentials for another machine.";
  static override readonly description =
    "Run it on the coordinator's machine: it reads the CA's key. The file that it writes is a secret; copy it to the other " +
    "machine over a channel that you trust. An enrolment bundle lets workers join, as many and as long as `enrolment.quota` and " +
    "`enrolment.lifetime` say, and is all they need; `rollout ca revoke` ends it. An " +
    "operator's lets commands be run from elsewhere, which then name it by all of --ca-file, --cert-file and --key-file.";
  static override readonly examples = [
    {
      description: "Let the workers of another machine join:",
      command:
        "<%= config.bin %> <%= command.id %> --coordinator-addr head.example:50051 --out enrolment.pem",
    },
    {
      description: "Run commands from elsewhere:",
      command: "<%= config.bin %> <%= command.id %> --role operator --out operator.pem",
    },
  ];
  static override readonly flags = {
    ...configFlagsFor(["run_id", "transport.tls_dir", "worker.coordinator_addr", "enrolment.lifetime"]),
    role: Flags.string({ summary: "What the bearer may do.", options: [...ROLES], default: "enrolment" }),
    out: Flags.string({
      char: "o",
      summary: "The file to write, mode 600.",
      helpValue: "FILE",
      required: true,
    }),
    id: Flags.string({ summary: "The bearer's id; a new one without it.", helpValue: "ULID" }),
    host: Flags.string({
      summary: "For --role coordinator: a DNS name or IP address of it. Repeatable.",
      multiple: true,
      helpValue: "NAME",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(CaIssue);
    const config = await this.loadConfig("operator", flags);
    const role = ROLES.find((known) => known === flags.role) ?? "enrolment";
    const hosts = flags.host ?? [];
    if (hosts.length > 0 && role !== "coordinator")
      throw this.misuse("--host is for --role coordinator only");
    const id = flags.id === undefined ? newUlid<WorkerId>(systemClock, systemRandom) : parseUlid(flags.id);
    if (id === undefined) throw this.misuse(`--id ${flags.id} is not a ULID`);
    if (role !== "coordinator") this.#refuseAddressOfHere(config, flags);
    await this.#refuseExisting(flags.out);
    const { tlsDir } = config.transport;
    const { coordinatorAddr } = config.worker;
    const lifetimes = { ...LIFETIMES, enrolmentMs: config.enrolment.lifetimeMs };
    const parts = { tlsDir, clock: systemClock, random: systemRandom, lifetimes };
    const authority = await openExistingAuthority(parts);
    const bundle = await issueBundle(authority, {
      identity: { runId: config.runId, role, id },
      coordinatorAddr,
      hosts,
    });
    await replaceFile(flags.out, bundle, SECRET_MODE, systemRandom);
    this.print(
      [{ file: flags.out, role, id, run_id: config.runId, coordinator_addr: coordinatorAddr.join() }],
      `Wrote ${flags.out}: ${role} ${id}, for the coordinator at ${coordinatorAddr.join(", ")}\n`,
    );
  }

  /** A file that is there may be the only copy of credentials that stay valid, with the id by which they are revoked. */
  async #refuseExisting(file: string): Promise<void> {
    const isThere = await lstat(file).then(
      () => true,
      () => false,
    );
    if (!isThere) return;
    const detail =
      `${file} is there already, and credentials in it stay valid when it is overwritten: choose another name, or end them ` +
      `with \`${this.hinted("ca", "revoke")}\` and remove it`;
    throw this.misuse(detail);
  }

  /** Another machine does not find the coordinator at an address that means itself. */
  #refuseAddressOfHere(
    { transport, worker, source }: ClientConfig,
    { "coordinator-addr": given }: Readonly<Record<string, unknown>>,
  ): void {
    const isOfHere = worker.coordinatorAddr.some((text) => isLoopback(parseAddress(text)?.host ?? ""));
    const listen = parseAddress(transport.listenAddr ?? "");
    if (given !== undefined || !isOfHere) return;
    // A coordinator that listens on this machine alone is reached by a tunnel, or not at all.
    if (listen !== undefined && isLoopback(listen.host)) return;
    const key = "worker.coordinator_addr";
    const allowed = "the coordinator's address as other machines reach it: --coordinator-addr HOST:PORT";
    throw failure("config_invalid_value", { source, key, value: worker.coordinatorAddr.join(), allowed });
  }
}
