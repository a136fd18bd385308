// `rollout results`
import { EXIT } from "../base/error-row.ts";
import { systemClock } from "../base/clock.ts";
import { RolloutError } from "../base/errors.ts";
import { systemRandom } from "../base/random.ts";
import { printable } from "../base/safe-text.ts";
import type { ExitCode } from "../base/error-row.ts";
import type { BaseCommand } from "../cli/base-command.ts";
import { setAsideText } from "../cli/render/run-status.ts";
import { Flags } from "../cli/oclif.ts";
import { untilSeenEnough } from "../cli/signals.ts";
import type { SeenEnough } from "../cli/signals.ts";
import { number } from "../cli/render/quantities.ts";
import { FORMAT_NAMES, jsonRefusal } from "../cli/results/format.ts";
import type { FormatName } from "../cli/results/format.ts";
import { isSameFile } from "../cli/results/outlet.ts";
import { followResults, insideOf, missingText, openResultSink } from "../cli/results/result-sink.ts";
import type { Pumped, ResultTarget } from "../cli/results/result-sink.ts";
import { configFlags } from "../cli/setting-flags.ts";
import type { ResultPage } from "../client/results.ts";
import type { RunStatus } from "../client/run-status.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { openDamagedStore } from "../compose/damaged-store.ts";
import { storageName } from "../compose/ledger-store.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import type { RolloutClient } from "../compose/rollout-client.ts";
import { silentLogger } from "../observe/log.ts";

/** Keys of rows that cannot be read which are named. */
const DAMAGES_SHOWN = 10;
const ORDERS = ["input", "completion"] as const;

/** How a reading has ended, and the lines that it has written. */
interface Written {
  readonly outcome: Pumped;
  readonly results: number;
  readonly failures: number;
  /** Results of items that other items have made, and failures among them of which no actor was told. */
  readonly inside: number;
  readonly unheard: number;
}

export class Results extends OperatorCommand {
  static override readonly summary = "Print the results, or write them to files.";
  static override readonly description =
    "At any time: the results that are recorded, or with --follow all of them as they come, until the run is over; then it also waits for a coordinator that is away. A file is replaced as a whole. With --follow it grows by whole lines, and the same command continues it, however the last one ended; its position is in FILE.cursor. Failures stand among the results unless --errors names a file for them. In order of input " +
    "results come up to the first item that is not final. The formats are described in docs/results.md.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> -o answers.jsonl --errors failures.jsonl",
    "<%= config.bin %> <%= command.id %> --order completion --follow -o answers.jsonl",
    "<%= config.bin %> <%= command.id %> --format csv -o answers.csv",
    "<%= config.bin %> <%= command.id %> --plugin-version 2",
    "<%= config.bin %> <%= command.id %> --format openai -o output.jsonl --errors errors.jsonl",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    output: Flags.string({
      char: "o",
      summary: "Write to this file; without it, or as -, to standard output.",
      helpValue: "FILE",
    }),
    format: Flags.option({ options: FORMAT_NAMES, summary: "How they look." })({ default: "jsonl" }),
    errors: Flags.string({
      summary: "Write failures to this file, and only results to the other.",
      helpValue: "FILE",
    }),
    order: Flags.option({ options: ORDERS, summary: "As submitted, or as they became final." })({
      default: "input",
    }),
    follow: Flags.boolean({
      default: false,
      char: "f",
      summary: "Keep printing results until the run is over.",
    }),
    inside: Flags.boolean({
      default: false,
      summary:
        "Also those of items that other items have made: messages between actors, timers, invocations, named actions.",
    }),
    "plugin-version": Flags.string({
      summary: "Only results of this version of the plugin, as a release tries one.",
      helpValue: "V",
    }),
    "with-input": Flags.boolean({ default: false, summary: "Include the payload with each result." }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Results);
    const output = flags.output === "-" ? undefined : flags.output;
    const { follow, errors, format, order } = flags;
    const pluginVersion = flags["plugin-version"];
    await this.#check({ output, errors, format, follow, withInput: flags["with-input"], pluginVersion });
    const exportFrom = async (
      client: RolloutClient,
      { runId }: ClientConfig,
      // Results that go to a file are written to its end, even if nobody reads what is said about them.
      enough = untilSeenEnough(this.argv, output === undefined),
    ): Promise<ExitCode> => {
      const mode = follow ? "grow" : "replace";
      const how = { withInput: flags["with-input"], inside: flags.inside, pluginVersion };
      const target = { output, errors, format, order, mode, runId, ...how } as const;
      // Rows are set aside while no coordinator leads, so those that were at the beginning are those at the end.
      const before = follow ? await client.status().catch(undefinedWhenUnreachable) : undefined;
      const written = await this.#write(client, target, follow, enough);
      const { outcome, failures, unheard } = written;
      if (outcome === "reader-gone") return EXIT.done;
      const run = await client.status().catch((error: unknown): undefined => {
        // Its coordinator may leave as soon as the run is over: no result is missing.
        if (before === undefined || outcome !== "end" || !isUnreachable(error)) throw error;
      });
      this.#tellOutcome(target, written, run);
      const known = run ?? before;
      const setAside = known?.setAside ?? 0;
      if (known !== undefined && setAside > 0) this.tell(setAsideText(known));
      if (outcome === "end" && setAside > 0) return EXIT.storage;
      return outcome === "end" && (run?.failed ?? failures) + unheard > 0 ? EXIT.itemsFailed : EXIT.done;
    };
    // One that is asked once is not waited for; who follows waits, from the start on.
    if (follow) {
      const enough = untilSeenEnough(this.argv, output === undefined);
      const exit = await this.followRun(flags, enough, (client, config) =>
        exportFrom(client, config, enough),
      );
      return exit ?? EXIT.done;
    }
    const coordinator = { hasAnswered: false };
    try {
      return await this.withRun(flags, async (client, config) => {
        await client.status();
        coordinator.hasAnswered = true;
        return exportFrom(client, config);
      });
    } catch (error) {
      // Without a coordinator, also in the directory of a local run that has ended.
      const exit = coordinator.hasAnswered ? undefined : await this.#fromDamaged(flags, error, exportFrom);
      if (exit === undefined) throw error;
      return exit;
    }
  }

  /** From the database itself when no coordinator can lead with it; undefined when that is not why there is none. */
  async #fromDamaged(
    flags: Parameters<BaseCommand["loadConfig"]>[1],
    trouble: unknown,
    exportFrom: (client: RolloutClient, config: ClientConfig) => Promise<ExitCode>,
  ): Promise<ExitCode | undefined> {
    if (!isUnreachable(trouble)) return undefined;
    const config = await this.loadConfig("coordinator", flags).catch(() => undefined);
    const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
    const found = config && (await openDamagedStore(config, ports).catch(undefinedWhenAway));
    if (config === undefined || found === undefined) return undefined;
    try {
      const name = storageName(config);
      this.tell(`No coordinator can lead with the database ${name}: what can be read of it is exported.`);
      for (const { key } of found.damages.slice(0, DAMAGES_SHOWN))
        this.tell(`It is damaged at ${printable(key)}.`);
      this.tell(`\`${this.hinted("doctor")}\` says what is wrong and what to do.`);
      const exit = await exportFrom(found.client, config);
      return exit === EXIT.done || exit === EXIT.itemsFailed ? EXIT.storage : exit;
    } finally {
      await found.close();
    }
  }

  async #check(wanted: {
    readonly output: string | undefined;
    readonly errors: string | undefined;
    readonly format: FormatName;
    readonly follow: boolean;
    readonly withInput: boolean;
    readonly pluginVersion: string | undefined;
  }): Promise<void> {
    const { output, errors, format, follow, withInput } = wanted;
    const refuse = (detail: string): never => {
      throw this.misuse(detail);
    };
    const unlike = this.isForPrograms ? jsonRefusal(format, output) : undefined;
    if (unlike !== undefined) refuse(unlike);
    if (format === "openai" && withInput) refuse("--format openai has no place for --with-input");
    if (wanted.pluginVersion === "") refuse("--plugin-version needs a version, such as 2");
    if (errors === undefined) return;
    if (follow && output === undefined)
      refuse("--errors with --follow needs -o FILE: standard output cannot be gone on with");
    if (output !== undefined && (await isSameFile(output, errors)))
      refuse("-o and --errors name the same file");
  }

  async #write(
    client: RolloutClient,
    target: ResultTarget,
    follow: boolean,
    enough: SeenEnough,
  ): Promise<Written> {
    const { order, withInput = false, pluginVersion } = target;
    const sink = await openResultSink(target);
    if (sink.missing !== undefined) this.tell(missingText(sink.missing));
    const pagesAfter = (after: string): AsyncIterable<ResultPage> =>
      client.resultPages({
        ...{ after, follow, order, withInput, inside: insideOf(target), signal: enough.signal },
        ...(follow && { patienceMs: Infinity }),
        ...(pluginVersion !== undefined && { pluginVersion }),
        onTrouble: (error) =>
          this.tell(error === undefined ? "The coordinator answers again." : `Waiting: ${error.message}.`),
      });
    const outcome = await followResults(pagesAfter, sink).catch((error: unknown): Pumped => {
      if (enough.isReaderGone) return "reader-gone";
      throw error;
    });
    const { results, failures, inside, unheard } = sink;
    return { outcome, results, failures, inside, unheard };
  }

  /** On standard output only when the results are not there. */
  #tellOutcome(
    { output, errors, order, pluginVersion }: ResultTarget,
    { outcome, results, failures, inside }: Written,
    run: RunStatus | undefined,
  ): void {
    const final = run === undefined ? results : run.done + run.failed + inside;
    // Those of one version are no part that can be counted.
    const isCounted = order === "input" && pluginVersion === undefined;
    const isPart = outcome !== "end" && isCounted && final > results;
    if (output !== undefined) {
      const kept = errors === undefined ? results : results - failures;
      const files = `${number(kept)} result${kept === 1 ? "" : "s"} in ${output}`;
      const also =
        errors === undefined ? "" : `, ${number(failures)} failure${failures === 1 ? "" : "s"} in ${errors}`;
      const object = { results, failures, output, errors: errors ?? null, end: outcome === "end" };
      this.print([object], `${files}${also}\n`);
    }
    if (run === undefined) return;
    if (isPart) {
      this.tell(
        `These are the first ${number(results)} in order of input: the next item is not final. ` +
          `\`--order completion\` gives all ${number(final)} that are.`,
      );
    } else if (run.state === "cancelled" && run.pending > 0) {
      this.tell(`The run was cancelled: ${number(run.pending)} of its items were never run.`);
    } else if (outcome === "caught-up") {
      const left = run.pending + run.running;
      const items = `${number(left)} item${left === 1 ? " is" : "s are"} not final yet`;
      this.tell(left === 0 ? "The run is open: more items may come." : `The run is not over: ${items}.`);
    }
  }
}

function isUnreachable(error: unknown): boolean {
  return error instanceof RolloutError && error.row.exit === EXIT.unreachable;
}

function undefinedWhenUnreachable(error: unknown): undefined {
  if (!isUnreachable(error)) throw error;
}

/** Where neither coordinator nor database can be reached, the coordinator is what was asked. */
function undefinedWhenAway(error: unknown): undefined {
  if (!(error instanceof RolloutError) || error.code !== "store_unreachable") throw error;
}
