// `rollout key export`
import { failure } from "../../base/errors.ts";
import { Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { exportKeys } from "../../client/moved-keys.ts";
import type { Unmovable } from "../../client/moved-keys.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";

const SHOWN_MAX = 5;

const WHY: Readonly<Record<string, string>> = {
  running: "one of its items is with a worker, or waits after a failure",
  failed: "a failed item has parked it: run `rollout retry` or `rollout key skip` first",
  too_large: "too many items wait for it to be moved at once",
};

export class KeyExport extends OperatorCommand {
  static override readonly summary = "Print keys with their states and items, for import into another run.";
  static override readonly description =
    "One key a line: its state and waiting items; for actors also timers, invocations and children. The run must be paused and no item may execute, so that no key " +
    "goes on in both runs; cancel the run when the other run has the keys. Results stay in this run, and so do the ids of finished events: such an event, " +
    "sent to the other run, runs again.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> > keys.jsonl",
    "<%= config.bin %> <%= command.id %> --prefix order/ > orders.jsonl",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    prefix: Flags.string({
      summary:
        "Only keys that begin with this text: `order/` selects the actors of a type and their children.",
      helpValue: "TEXT",
      default: "",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(KeyExport);
    const unmovable: Unmovable[] = [];
    let keys = 0;
    await this.withRun(flags, async (client) => {
      await refuseMoving(client);
      for await (const one of exportKeys(client.keyCalls, flags.prefix)) {
        if (typeof one !== "string") unmovable.push(one);
        else {
          this.print([JSON.parse(one) as object], `${one}\n`);
          keys++;
        }
      }
    });
    const [first] = unmovable;
    if (first !== undefined) {
      const alike = unmovable.filter(({ why }) => why === first.why).map(({ key }) => key);
      const more = alike.length > SHOWN_MAX ? ` and ${alike.length - SHOWN_MAX} more` : "";
      const reason = WHY[first.why] ?? first.why;
      throw failure("key_refused", { keys: `${alike.slice(0, SHOWN_MAX).join(", ")}${more}`, reason });
    }
    if (keys === 0) this.tell("The run has no such keys.");
  }
}

async function refuseMoving(client: RolloutClient): Promise<void> {
  const { state } = await client.status();
  if (state !== "paused" && state !== "complete") throw failure("run_not_paused", {});
}
