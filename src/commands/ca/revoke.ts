// `rollout ca revoke`
import { BaseCommand } from "../../cli/base-command.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { unlessInterrupted } from "../../cli/signals.ts";
import type { ResolvedConfig } from "../../config/resolve.ts";
import type { Revoked } from "../../compose/revoke.ts";
import { bearerNamed, revoke } from "../../compose/revoke.ts";

export class CaRevoke extends BaseCommand {
  static override readonly summary = "Revoke a certificate for good.";
  static override readonly description =
    "The certificate of an enrolment bundle, a worker or an operator. From then on each call of its bearer is refused, and its open streams end within a second; the items of a worker go to others. A bundle that is revoked lets nobody in; the workers that have " +
    "joined by it stay, unless --with-workers revokes them too. The coordinator is asked; when none runs, and this is its " +
    "machine, its next start knows. What the coordinator's own machine needs is made anew under another id.";
  static override readonly examples = [
    {
      description: "A bundle that has leaked:",
      command: "<%= config.bin %> <%= command.id %> enrolment.pem",
    },
    {
      description: "The same, and whoever has joined by it:",
      command: "<%= config.bin %> <%= command.id %> 01JZ8Q6T0C5V9W3R7X2Y4B6D8F --with-workers",
    },
  ];
  static override readonly args = {
    bearer: Args.string({
      description:
        "The bearer: its id, as `rollout worker list`, events and bundles name it, or a file with its certificate.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    "with-workers": Flags.boolean({ summary: "Of a bundle: also the workers that have joined by it." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(CaRevoke);
    const id = await bearerNamed(args.bearer);
    if (id === undefined) {
      const detail = `${args.bearer} is neither the id of a bearer nor a file with its certificate`;
      throw this.misuse(detail);
    }
    const config = await this.loadConfig("operator", flags);
    const request = { id, withWorkers: flags["with-workers"] };
    const local = (): Promise<ResolvedConfig> => this.loadConfig("coordinator", flags);
    const asked = revoke(config, local, request, await this.openLog(config.log));
    asked.catch(() => undefined);
    const revoked = await unlessInterrupted(asked, this.argv);
    const { enrolled, workersRevoked, isInForce, isWorker } = revoked;
    this.print(
      [
        {
          ...{ bearer_id: id, is_worker: isWorker, enrolled },
          ...{ workers_revoked: workersRevoked, in_force: isInForce },
        },
      ],
      `Revoked ${id}${describe(revoked)}\n`,
    );
  }
}

function describe({ isWorker, enrolled, workersRevoked, isInForce }: Revoked): string {
  const when = isInForce ? "" : "; no coordinator runs: the next start keeps it out";
  if (isWorker) return `, a worker of this run${when}`;
  if (enrolled === 0) return `, by whom nobody has joined so far${when}`;
  const joined = `, a bundle by which ${enrolled} ${enrolled === 1 ? "worker has" : "workers have"} joined`;
  const they = workersRevoked > 0 ? "they are revoked too" : "they stay, unless --with-workers";
  return `${joined}: ${they}${when}`;
}
