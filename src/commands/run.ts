// `rollout run`
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { ExitCode } from "../base/error-row.ts";
import { systemRandom } from "../base/random.ts";
import { redactCommand } from "../base/safe-text.ts";
import { splitAtDashes, wantsJson } from "../cli/arguments.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { wantsColour } from "../cli/exit.ts";
import { Args, Flags } from "../cli/oclif.ts";
import { openDisplay, silentDisplay } from "../cli/render/progress-display.ts";
import { fieldFlags, fieldsOf, KEYLESS_EVENT } from "../cli/field-flags.ts";
import { FORMAT_NAMES, jsonRefusal } from "../cli/results/format.ts";
import { settingFlags } from "../cli/setting-flags.ts";
import { shellWords } from "../cli/shell-words.ts";
import { untilSignalled } from "../cli/signals.ts";
import { crewOfFleet, crewOfHosts } from "../compose/local-run/hosts.ts";
import type { HostCrew } from "../compose/local-run/hosts.ts";
import {
  checkSettings,
  hostWords,
  LOCAL_SETTINGS,
  localEnvironment,
} from "../compose/local-run/local-config.ts";
import { runLocally } from "../compose/local-run/local-run.ts";
import { goesOn, goOn, outcomeOf } from "../compose/local-run/outcome.ts";
import type { Hold, LocalRunRequest } from "../compose/local-run/request.ts";
import { chooseFiles } from "../compose/local-run/result-files.ts";
import type { ResultFiles } from "../compose/local-run/result-files.ts";
import { HIDDEN } from "../compose/local-run/run-directory.ts";
import { demandFiles, filesOfLocalRun } from "../compose/open-files.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { commandManifest, commandManifestText, loadManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";
import type { ClientConfig } from "../config/resolve.ts";
import { settingOf, environmentName } from "../config/schema.ts";
import { taskOf } from "../config/task.ts";

const WORKERS_DEFAULT_MAX = 4;
const STANDARD_INPUTS: readonly string[] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
/** The path that a shell puts in the place of `<(COMMAND)`: it is of this one process. */
const HANDED_OVER = /^\/(?:dev|proc\/self)\/fd\/\d+$/;
/** Requests to a server that waits for them, not for us. */
const SERVER_SLOTS = 8;
/** As many as a host has cores. */
const OF_CORES = 0;

export class Run extends BaseCommand {
  static override readonly summary = "Run a file of items here, or on hosts by ssh, from input to results.";
  static override readonly usage =
    "<%= command.id %> [FILE] [-o OUT] [--workers N] [--host HOST]… [--plugin FILE | -- COMMAND…]";
  static override readonly description =
    "Writes results as they come. However it ends, the same command continues, and what is finished never runs " +
    "again. Ctrl-C gives running items 15 s; twice stops at once. Other commands look into it by -c DIR.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> prompts.jsonl -o answers.jsonl --workers 4 -- python3 infer.py {.prompt}",
    "<%= config.bin %> <%= command.id %> prompts.jsonl -o answers.jsonl --plugin vllm.toml --host a --host b=4",
    "cat urls.txt | <%= config.bin %> <%= command.id %> --text -o pages.jsonl -- curl -fsS {}",
  ];
  static override readonly args = {
    file: Args.string({
      description: "The items, one a line; - or nothing: standard input.",
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    output: Flags.string({
      char: "o",
      summary: "Where results go; standard output unless set.",
      helpValue: "OUT",
    }),
    workers: Flags.integer({
      summary: "[default: one a core, at most 4] Workers to start: 1 to 1024.",
      min: 1,
      max: 1_024,
      helpValue: "N",
    }),
    host: Flags.string({
      summary: "A host, as ssh knows it, in place of this machine; slots: its cores.",
      multiple: true,
      multipleNonGreedy: true,
      helpValue: "HOST[=SLOTS]",
    }),
    fleet: Flags.string({
      summary: "Hosts in place of --host: a [[fleet]] by ssh of ./rollout.toml.",
      helpValue: "NAME",
    }),
    plugin: Flags.string({
      summary: "The manifest of what executes items, in place of COMMAND.",
      helpValue: "FILE",
    }),
    text: Flags.boolean({ summary: "Take each line as it is, not as JSON." }),
    ...fieldFlags,
    errors: Flags.string({
      summary: "[default: OUT with .errors before its extension] Where failures go.",
      helpValue: "FILE",
    }),
    format: Flags.option({
      options: FORMAT_NAMES,
      summary: "How results are written.",
      helpValue: FORMAT_NAMES.join("|"),
    })({
      default: "jsonl",
    }),
    order: Flags.option({
      options: ["input", "completion"] as const,
      helpValue: "input|completion",
      summary: "The order of results: of the input, or of completion.",
    })({ default: "completion" }),
    "retry-failed": Flags.boolean({ summary: "Run failed items again, with all attempts." }),
    dir: Flags.string({
      summary: `[default: OUT.rollout, or ${HIDDEN}/…] The run's own directory.`,
      helpValue: "DIR",
    }),
    ...settingFlags(LOCAL_SETTINGS),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(Run);
    const program = {
      executable: process.execPath,
      words: [...process.execArgv, ...process.argv.slice(1, 2)],
      environment: localEnvironment(process.env),
      workingDirectory: process.cwd(),
    };
    const config = checkSettings(flags, program);
    const manifest = await this.#manifest(flags.plugin);
    const file = this.#file(args.file);
    const files = await this.#files(file, flags);
    const hosts = await this.#hosts(manifest, flags, config);
    const { workers, slots } = crewOf(manifest, flags.workers, !this.#saysSlots(flags), config, hosts);
    demandFiles(filesOfLocalRun(workers, slots));
    const again = (...words: string[]): string => this.#again(file, ...words);
    const task = taskOf(manifest);
    const fields = fieldsOf(flags, (detail) => this.misuse(detail));
    if (task.actorTypes !== undefined && fields === undefined) throw this.misuse(KEYLESS_EVENT);
    const request: LocalRunRequest = {
      input: {
        ...{ file, kind: flags.text ? "text" : "json", lineBytesMax: config.limits.payloadBytes },
        ...{ fields, actorTypes: task.actorTypes },
      },
      ...{ program, task, itemBytesMax: config.limits.payloadBytes },
      flags: { ...flags, slots: String(slots) },
      manifest:
        this.commandLine === undefined
          ? { file: manifest.file }
          : { text: commandManifestText(this.commandLine, process.cwd()) },
      ...{ hosts, files },
      directory: flags.dir === undefined ? undefined : resolve(flags.dir),
      workers,
      asksForWorkers: flags.workers !== undefined,
      slotsPerWorker: slots,
      retryFailed: flags["retry-failed"],
      skipsParked: config.keys.onFailed === "skip",
      again: this.#mayHaveSecrets ? undefined : again(),
    };
    const outcome = outcomeOf(await this.#perform(request, again), files, again);
    if (outcome.error !== undefined) process.stderr.write(`${outcome.error}\n`);
    for (const line of outcome.lines) this.tell(line);
    this.print([outcome.object], "");
    return outcome.exit;
  }

  protected override takesCommandLine(): boolean {
    return true;
  }

  async #perform(request: LocalRunRequest, again: () => string): ReturnType<typeof runLocally> {
    let hold: Hold | undefined;
    const endAtOnce = (): string | undefined => {
      hold?.killAll();
      const end = hold?.end();
      return end === undefined || goesOn(end) ? goOn(again) : undefined;
    };
    const palette = { colour: wantsColour(process.stderr), unicode: hasUnicode() };
    return runLocally(request, {
      clock: systemClock,
      random: systemRandom,
      display: wantsJson(this.argv) ? silentDisplay : openDisplay(process.stderr, systemClock, palette),
      interrupted: untilSignalled(this.argv, endAtOnce),
      onStarted: (started) => {
        hold = started;
      },
    });
  }

  #saysSlots(flags: Readonly<Record<string, unknown>>): boolean {
    const key = "worker.slots";
    const variable = process.env[environmentName(key)] ?? "";
    return flags[settingOf(key).flag] !== undefined || variable !== "";
  }

  async #manifest(plugin: string | undefined): Promise<Manifest> {
    const { commandLine } = this;
    if ((plugin === undefined) === (commandLine === undefined))
      throw this.misuse("say what is to be run: either a command after --, or --plugin FILE");
    if (plugin !== undefined) return loadManifest(plugin);
    if (commandLine === undefined || commandLine.length === 0)
      throw this.misuse("there is no command after --");
    return commandManifest(commandLine, process.cwd());
  }

  async #hosts(
    manifest: Manifest,
    flags: Readonly<Record<string, unknown>> & {
      readonly host?: string[] | undefined;
      readonly fleet?: string | undefined;
    },
    { worker }: ClientConfig,
  ): Promise<HostCrew | undefined> {
    const { host, fleet } = flags;
    if (host !== undefined && fleet !== undefined)
      throw this.misuse("say where it is to run by --host or by --fleet");
    const { commandLine } = this;
    const request = {
      words: hostWords(flags, process.env, process.cwd()),
      manifest:
        commandLine === undefined
          ? { file: manifest.file }
          : { text: commandManifestText(commandLine, undefined) },
    };
    if (fleet !== undefined) return crewOfFleet(fleet, CONFIG_FILE_NAME, request);
    const slots = this.#saysSlots(flags) ? worker.slots : (concurrencyOf(manifest) ?? OF_CORES);
    return host === undefined ? undefined : crewOfHosts(host, slots, request);
  }

  #file(file: string | undefined): string | undefined {
    if (file !== undefined && file !== "-") return file;
    if (file === undefined && process.stdin.isTTY) throw this.misuse("missing argument FILE");
    return undefined;
  }

  /** Refuses what would be lost before anything is started. */
  async #files(
    input: string | undefined,
    flags: Pick<ResultFiles, "output" | "errors" | "format" | "order"> & {
      readonly dir: string | undefined;
      readonly plugin: string | undefined;
    },
  ): Promise<ResultFiles> {
    const { output, errors, format, order, dir: directory, plugin: manifest } = flags;
    const chosen = await chooseFiles({ output, errors, directory, input, manifest });
    if ("refusal" in chosen) throw this.misuse(chosen.refusal);
    const unlike = this.isForPrograms ? jsonRefusal(format, chosen.output) : undefined;
    if (unlike !== undefined) throw this.misuse(unlike);
    return { ...chosen, format, order };
  }

  /**
   * The same command, with more flags before what stands after `--`; in other words where it may have secrets. Input that came through a
   * pipe has to come again.
   */
  #again(file: string | undefined, ...words: string[]): string {
    const more = words.length === 0 ? "" : ` with ${shellWords(words)}`;
    if (this.#mayHaveSecrets) return `the same command${more} (it is not shown: it may have secrets)`;
    const again = shellWords(this.#words(...words));
    if (file === undefined || STANDARD_INPUTS.includes(file)) return `... | ${again}`;
    return HANDED_OVER.test(file) ? again.replace(file, "<(...)") : again;
  }

  #words(...more: string[]): string[] {
    const own = splitAtDashes(this.argv).own.filter((word) => word !== "--retry-failed");
    const rest = this.commandLine === undefined ? [] : ["--", ...this.commandLine];
    return [...this.fullName().split(" "), ...own, ...more, ...rest];
  }

  get #mayHaveSecrets(): boolean {
    const words = this.#words();
    return redactCommand(words) !== words.join(" ");
  }
}

/** How many workers with how many slots each, where nobody has said. */
function crewOf(
  manifest: Manifest,
  workers: number | undefined,
  chooseSlots: boolean,
  { worker }: ClientConfig,
  hosts: HostCrew | undefined,
): { readonly workers: number; readonly slots: number } {
  const here = manifest.backend === "http" ? 1 : Math.min(WORKERS_DEFAULT_MAX, availableParallelism());
  return {
    workers: workers ?? (hosts === undefined ? here : 0),
    slots: chooseSlots ? (concurrencyOf(manifest) ?? 1) : worker.slots,
  };
}

/** How many items a worker of it executes at once, where that is the plugin's business. */
function concurrencyOf(manifest: Manifest): number | undefined {
  if (manifest.backend === "http") return manifest.spec.concurrency ?? SERVER_SLOTS;
  return manifest.backend === "process" ? manifest.spec.concurrency : undefined;
}

function hasUnicode(): boolean {
  const { LC_ALL, LC_CTYPE, LANG } = process.env;
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => value !== undefined && value !== "");
  return /utf-?8/i.test(locale ?? "");
}
