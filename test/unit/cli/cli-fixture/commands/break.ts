// Goes wrong in the way that is asked for.
import { systemClock } from "../../../../../src/base/clock.ts";
import { failure } from "../../../../../src/base/errors.ts";
import type { ExitCode } from "../../../../../src/base/error-row.ts";
import { BaseCommand } from "../../../../../src/cli/base-command.ts";
import { Args } from "../../../../../src/cli/oclif.ts";

export class Break extends BaseCommand {
  static override readonly summary = "Go wrong.";
  static override readonly args = { how: Args.string({ required: true, ignoreStdin: true }) };

  override async run(): Promise<ExitCode> {
    const { args } = await this.parse(Break);
    const bug = new TypeError("x is not\na function");
    if (args.how === "throw") throw bug;
    if (args.how === "reject") void Promise.reject(bug);
    if (args.how === "later") systemClock.nextTurn(() => fail(bug));
    if (args.how === "fail")
      throw failure("listen_failed", {
        address: "a\u001b[2J:1",
        reason: "in use",
        setting: "transport.listen_addr",
      });
    return await new Promise<never>((_resolve, reject) =>
      systemClock.after(4_000, () => reject(new Error("nothing happened"))),
    );
  }
}

function fail(error: Error): never {
  throw error;
}
