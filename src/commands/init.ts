// `rollout init`: one configuration file and a CA, so that the next command works. The file is put in place last and
// never over another one, so it is there exactly when what it names is.
import { access } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";
import { newUlid } from "../base/ids.ts";
import { makeDirectory } from "../base/make-directory.ts";
import type { RunId } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { unwritable } from "../base/system-reason.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { Flags } from "../cli/oclif.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { TEMPLATE_TLS_DIR, configTemplate } from "../config/template.ts";
import { openAuthority } from "../transport/tls/authority.ts";
import { PUBLIC_MODE, createFile } from "../transport/tls/credential-files.ts";

/** As any directory that a person makes. */
const DIRECTORY_MODE = 0o755;

export class Init extends BaseCommand {
  static override readonly summary = "Write a configuration file and make a CA.";
  static override readonly description =
    "Coordinator, workers and every other command read the same file. Run again, it changes nothing.";
  static override readonly examples = [
    { description: "In this directory:", command: "<%= config.bin %> init" },
    { description: "In another one:", command: "<%= config.bin %> init --dir ./cluster" },
  ];
  static override readonly flags = {
    dir: Flags.string({ summary: "The directory to write into.", default: ".", helpValue: "PATH" }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Init);
    const directory = resolve(flags.dir);
    const file = join(directory, CONFIG_FILE_NAME);
    const runId = (await isThere(file)) ? undefined : await this.create(directory, file);
    this.report(file, runId);
    return EXIT.done;
  }

  /** Undefined when another process has just put a file there. */
  private async create(directory: string, file: string): Promise<RunId | undefined> {
    await makeDirectory(directory, DIRECTORY_MODE).catch((error: unknown) => {
      throw unwritable(file, error);
    });
    const opened = await openAuthority({
      tlsDir: join(directory, TEMPLATE_TLS_DIR),
      clock: systemClock,
      random: systemRandom,
    });
    if (opened.created) this.tell(`Generated dev CA at ${shown(opened.caFile)}`);
    const runId = newUlid<RunId>(systemClock, systemRandom);
    const created = await createFile(file, configTemplate(runId), PUBLIC_MODE, systemRandom);
    return created ? runId : undefined;
  }

  private report(file: string, runId: RunId | undefined): void {
    const inPlace = file === resolve(CONFIG_FILE_NAME);
    const config = inPlace ? "" : ` --config ${shown(file)}`;
    const next = ["coordinator run", "worker run", "worker list"].map(
      (command) => `${this.config.bin} ${command}${config}`,
    );
    const created = runId !== undefined;
    const what = created ? `Wrote ${shown(file)}` : `${shown(file)} is already there; nothing was changed`;
    const how = `Next, each in a terminal of its own:\n${next.map((command) => `  ${command}\n`).join("")}`;
    const result = { created, config: file, ...(created ? { run_id: runId } : {}), next };
    this.print([result], `${what}\n\n${how}`);
  }
}

async function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

/** As the user would type it. */
function shown(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : `./${path}`;
}
