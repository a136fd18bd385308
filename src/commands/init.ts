// `rollout init`: one configuration file and a CA, so that the next command works; or what the hosts of several coordinators need. The
// file is put in place last and never over another one, so it is there exactly when what it names is.
import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { parseAddress } from "../base/address.ts";
import { systemClock } from "../base/clock.ts";
import { newUlid } from "../base/ids.ts";
import { makeDirectory } from "../base/file-system.ts";
import type { RunId } from "../base/ids.ts";
import { systemRandom } from "../base/random.ts";
import { printable } from "../base/safe-text.ts";
import { asUnwritable } from "../base/system-reason.ts";
import { BaseCommand } from "../cli/base-command.ts";
import { Flags } from "../cli/oclif.ts";
import { shellWords } from "../cli/shell-words.ts";
import { parseCoordinatorHosts, writeCoordinatorHosts } from "../compose/coordinator-hosts.ts";
import type { CoordinatorHost } from "../compose/coordinator-hosts.ts";
import { LIMITS } from "../config/limits.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { openAuthority } from "../transport/tls/authority.ts";
import { PUBLIC_MODE, createFile } from "../transport/tls/credential-files.ts";

/** As any directory that a person makes. */
const DIRECTORY_MODE = 0o755;

export class Init extends BaseCommand {
  static override readonly summary = "Write a configuration file and make a CA.";
  static override readonly description =
    "Coordinator, workers and every other command read the same file. Run again, it changes nothing. With --coordinators it " +
    "writes a directory for each host besides, to be copied there: its configuration, the CA, which they all share, and " +
    "certificates with the host's name.";
  static override readonly examples = [
    { description: "In this directory:", command: "<%= config.bin %> init" },
    { description: "In another one:", command: "<%= config.bin %> init --dir ./cluster" },
    {
      description: "For coordinators on three hosts that share a Postgres database:",
      command: "<%= config.bin %> init --coordinators h1.example,h2.example,h3.example",
    },
  ];
  static override readonly flags = {
    dir: Flags.string({ summary: "The directory to write into.", default: ".", helpValue: "PATH" }),
    coordinators: Flags.string({
      summary:
        "Hosts of coordinators that share a database, each HOST or HOST:PORT; the default port is 50051.",
      helpValue: "A,B,C",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(Init);
    const directory = resolve(flags.dir);
    const file = join(directory, CONFIG_FILE_NAME);
    if (flags.coordinators !== undefined) return this.#initHosts(flags.coordinators, directory, file);
    const runId = existsSync(file) ? undefined : await this.create(directory, file);
    this.report(file, runId);
  }

  async #initHosts(text: string, directory: string, file: string): Promise<void> {
    const hosts = parseCoordinatorHosts(text);
    if (hosts === undefined) {
      const wanted = `1 to ${LIMITS.coordinators} hosts, each once, as HOST or HOST:PORT with commas between them`;
      throw this.misuse(`--coordinators ${printable(text)} does not name ${wanted}`);
    }
    let runId: RunId | undefined;
    if (!existsSync(file)) {
      await makeDirectory(directory, DIRECTORY_MODE).catch(asUnwritable(file));
      const ports = { clock: systemClock, random: systemRandom };
      const written = await writeCoordinatorHosts(directory, hosts, ports);
      if (written.createdCa) this.tell(`Generated dev CA at ${shown(written.caFile)}`);
      runId = written.runId;
    }
    this.#reportHosts(hosts, file, runId);
  }

  #reportHosts(hosts: readonly CoordinatorHost[], file: string, runId: RunId | undefined): void {
    const places = hosts.map(({ address, name }) => ({ address, directory: join(dirname(file), name) }));
    const created = runId !== undefined;
    if (!created && !places.every(({ directory }) => existsSync(join(directory, CONFIG_FILE_NAME)))) {
      const sentence = `${shown(file)} is already there, without those hosts; nothing was changed\n`;
      return this.print([{ created, config: file, next: [] }], sentence);
    }
    const copies = hosts.map(({ address, name }, at) => {
      const host = parseAddress(address)?.host ?? name;
      const target = host.includes(":") ? `[${host}]:rollout` : `${host}:rollout`;
      return shellWords(["scp", "-r", shown(places[at]?.directory ?? name), target]);
    });
    const there = `${this.config.bin} coordinator run --config rollout`;
    const here = `${this.config.bin} worker list${this.#configWords(file)}`;
    const result = {
      ...{ created, config: file, ...(created ? { run_id: runId } : {}) },
      coordinators: places,
      next: [...copies, there, here],
    };
    const lines = (texts: readonly string[]): string => texts.map((text) => `  ${text}\n`).join("");
    const what = created
      ? `Wrote\n${lines([file, ...places.map(({ directory }) => directory)].map(shown))}`
      : `${shown(file)} and the directories of those hosts are already there; nothing was changed\n`;
    const how =
      `Next, fill in storage.url in the ${CONFIG_FILE_NAME} of each host, and copy them:\n` +
      `${lines(copies)}On each of them:\n${lines([there])}Here, as soon as one leads:\n${lines([here])}`;
    this.print([result], `${what}\n${how}`);
  }

  #configWords(file: string): string {
    return file === resolve(CONFIG_FILE_NAME) ? "" : ` --config ${shown(file)}`;
  }

  /** Undefined when another process has just put a file there. */
  private async create(directory: string, file: string): Promise<RunId | undefined> {
    await makeDirectory(directory, DIRECTORY_MODE).catch(asUnwritable(file));
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
    const config = this.#configWords(file);
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

/** As the user would type it. */
function shown(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : `./${path}`;
}

// The file that `rollout init` writes: the least that coordinator, workers and commands on one machine need, and where to
// find the rest.

/** Relative to the file. */
export const TEMPLATE_TLS_DIR = "./data/tls";

/** The file's text. It resolves as it is. */
export function configTemplate(runId: RunId): string {
  return `# rollout: read by the coordinator, by workers and by every other command.
# Paths are relative to this file. All settings: docs/CONFIGURATION.md

# The run. Certificates and the database are bound to it.
run_id = "${runId}"

[storage]
# The coordinator's database, on a local disk.
path = "./data/rollout.db"

[transport]
# Where the coordinator listens. Workers on other machines need an address that they can reach.
listen_addr = "127.0.0.1:50051"
# Certificates and keys; whoever reads ca.key.pem can make more of them.
tls_dir = "${TEMPLATE_TLS_DIR}"

[worker]
# How many items one worker executes at once.
slots = 1
# What executes them, a manifest each (docs/plugins.md); without any, a mock that gives items back.
# plugins = ["./infer.toml"]
`;
}
