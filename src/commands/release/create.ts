// `rollout release create`
import { systemClock } from "../../base/clock.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { doubtsAbout, plannedObject, plannedText } from "../../cli/render/release-plan.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { provableInstead } from "../../compose/release-advice.ts";
import { beginRelease } from "../../compose/release-deeds.ts";
import { orderOf } from "../../compose/releases.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class ReleaseCreate extends OperatorCommand {
  static override readonly summary =
    "Begin a release: try another version of the plugin on some of the remaining items.";
  static override readonly description =
    "The new version gets a share of the items, in stages that grow, and is compared with the old version all the time. If it is measurably worse, it is rolled back, and the old version executes again the items that it failed. Otherwise it gets all items. " +
    "Workers need both manifests; those of a `rollout run` are given the new one.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --plugin v2.toml",
    "<%= config.bin %> <%= command.id %> --plugin v2.toml --stages 10%,50% --max-worse 5% --dry-run",
    "<%= config.bin %> <%= command.id %> better.toml -c answers.jsonl.rollout/rollout.toml",
  ];
  static override readonly args = {
    spec: Args.string({
      description: "A TOML file with stages and metrics (docs/releases.md).",
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    plugin: Flags.string({ summary: "The manifest of the new version.", helpValue: "MANIFEST" }),
    stages: Flags.string({
      summary:
        "[default: 1%,10%,50%] Without SPEC: shares of the items, each above the one before and below 100%; the last stage is always all items.",
      helpValue: "10%,50%",
    }),
    "max-worse": Flags.string({
      summary: "[default: 1%] Without SPEC: how much more often the new version may fail than the old one.",
      helpValue: "1%",
    }),
    wait: Flags.boolean({ default: false, summary: "Begin although no worker has the new version yet." }),
    "dry-run": Flags.boolean({
      default: false,
      summary: "Change nothing: print what the release can show with the remaining items.",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ReleaseCreate);
    const { plugin, stages, "max-worse": maxWorse, wait, "dry-run": dryRun, ...others } = flags;
    if (args.spec === undefined && plugin === undefined)
      throw this.misuse("name the manifest of the new version with --plugin, or in SPEC");
    if (args.spec !== undefined && (stages !== undefined || maxWorse !== undefined))
      throw this.misuse("SPEC has the stages and metrics: --stages and --max-worse go without it");
    const order = await orderOf({ plugin, spec: args.spec, stages: stages?.split(","), maxWorse });
    const { source: configFile } = await this.loadConfig("operator", others);
    const interruption = new AbortController();
    const planned = await this.askRun(
      others,
      (client) =>
        beginRelease(client.releases, {
          ...{ order, wait, dryRun, configFile, clock: systemClock, signal: interruption.signal },
        }),
      () => interruption.abort(),
    );
    this.print([plannedObject(planned)], plannedText(planned, this.hinted));
    const instead = provableInstead(planned, order.manifestFile, this.hinted);
    for (const doubt of doubtsAbout(planned, instead)) this.tell(`warning: ${doubt}`);
  }
}
