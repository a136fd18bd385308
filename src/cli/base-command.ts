// The base of every command: `--json`, its own part of the command line, one way to print a result, the configuration and
// a log that is closed at the end. Commands throw rows of the table of errors and return an exit code; src/cli/main.ts
// does the rest.
import type { Interfaces } from "@oclif/core";
import { systemClock } from "../base/clock.ts";
import type { ExitCode } from "../base/error-row.ts";
import { failure } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import { printableLines, shownOn } from "../base/safe-text.ts";
import { LIMITS } from "../config/limits.ts";
import { loadConfig } from "../config/load.ts";
import type { ConfigRequest } from "../config/load.ts";
import type { ClientConfig, ResolvedConfig } from "../config/resolve.ts";
import type { ConfigRole } from "../config/settings/setting.ts";
import { TOPICS } from "../observe/events.ts";
import { createLateLog } from "../observe/late-log.ts";
import type { LogOptions, LogSink, Logger } from "../observe/log.ts";
import { readDestination } from "../transport/tls/bundle.ts";
import { namedConfig, splitAtDashes, wantsJson } from "./arguments.ts";
import { wantsColour } from "./exit.ts";
import { Command, Flags } from "./oclif.ts";
import { hintedLine } from "./shell-words.ts";
import type { HintedLine } from "./shell-words.ts";

export abstract class BaseCommand extends Command {
  static override readonly baseFlags = {
    json: Flags.boolean({ summary: "Print the result as JSON, one object a line." }),
  };

  /** Words after `--`, unread. */
  protected commandLine: readonly string[] | undefined;
  #log: LogSink | undefined;

  /** Resolves with its exit code, and with nothing when it is done. Throws rows of the table of errors only; anything else is taken for a bug. */
  abstract override run(): Promise<ExitCode> | Promise<void>;

  /** Parses what stands before `--`. */
  protected override async parse<
    F extends Interfaces.OutputFlags<F>,
    B extends Interfaces.OutputFlags<B>,
    A extends Interfaces.OutputArgs<A>,
  >(options?: Interfaces.Input<F, B, A>, argv = this.argv): Promise<Interfaces.ParserOutput<F, B, A>> {
    const { own, commandLine } = splitAtDashes(argv);
    if (commandLine !== undefined && !this.takesCommandLine()) {
      throw this.misuse("this command takes nothing after --");
    }
    this.commandLine = commandLine;
    return await super.parse(options, [...own]);
  }

  protected override async catch(error: Error): Promise<never> {
    throw error;
  }

  protected override async finally(): Promise<void> {
    await this.#log?.close();
  }

  /** Reads the configuration of the role; `flags` are the parsed ones. */
  protected loadConfig(role: "coordinator", flags: ParsedFlags): Promise<ResolvedConfig>;
  protected loadConfig(role: ConfigRole, flags: ParsedFlags): Promise<ClientConfig>;
  protected loadConfig(role: ConfigRole, flags: ParsedFlags): Promise<ClientConfig> {
    const { config: file } = flags;
    const request: ConfigRequest = {
      file: typeof file === "string" ? file : undefined,
      environment: process.env,
      flags,
      workingDirectory: process.cwd(),
      topics: TOPICS,
      ...(role === "worker" && { readBundle: readDestination }),
    };
    return loadConfig(role, request);
  }

  /** The log of this command on standard error. It is closed when the command ends. */
  protected async openLog(settings: ClientConfig["log"]): Promise<Logger> {
    const { createLog } = await import("../observe/winston-log.ts");
    return (this.#log = createLog(logOptions(settings))).logger;
  }

  /** The same for a command that hardly ever has anything to say: its first line opens it. */
  protected openLateLog(settings: ClientConfig["log"]): Logger {
    return (this.#log = createLateLog(logOptions(settings))).logger;
  }

  /**
   * The result on standard output: each object a line with `--json`, else the text, which ends with a line ending, or bytes as
   * they are. A terminal obeys nothing of it. A disk that is full ends the process (src/cli/exit.ts).
   */
  protected print(objects: readonly object[], text: string | Uint8Array): void {
    const lines = objects.map((object) => `${JSON.stringify(object)}\n`).join("");
    process.stdout.write(shownOn(process.stdout, this.isForPrograms ? lines : text));
  }

  /** Whether a program reads the result. */
  protected get isForPrograms(): boolean {
    return wantsJson(this.argv);
  }

  /** A sentence for a person, on standard error; nothing with `--json`. */
  protected tell(sentence: string): void {
    if (!wantsJson(this.argv)) process.stderr.write(`${printableLines(sentence)}\n`);
  }

  /** The line of another command for a hint, about the run that this command is about. */
  protected readonly hinted: HintedLine = (...words) => hintedLine(namedConfig(this.argv))(...words);

  /** It was called as it cannot be. */
  protected misuse(detail: string): RolloutError {
    return failure("usage", { detail, command: this.fullName() });
  }

  /** `rollout worker run` */
  protected fullName(): string {
    return `${this.config.bin} ${(this.id ?? "").replaceAll(":", " ")}`;
  }

  /** Whether `-- COMMAND…` may be given; it is then in `this.commandLine`. */
  protected takesCommandLine(): boolean {
    return false;
  }
}

type ParsedFlags = Readonly<Record<string, unknown>>;

function logOptions({ level, format }: ClientConfig["log"]): LogOptions {
  const automatic = process.stderr.isTTY ? "human" : "json";
  return {
    stream: process.stderr,
    clock: systemClock,
    level,
    format: format === "auto" ? automatic : format,
    colour: wantsColour(process.stderr),
    limitBytes: LIMITS.logBufferBytes,
  };
}
