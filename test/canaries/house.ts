// A house of its own for a canary: the repository's rules over files that are planted there, in a temporary folder, so
// that nothing is ever planted in the repository itself.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { CHECKS } from "../../scripts/checks.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
const PROGRAMS = join(REPOSITORY, "node_modules/.bin");

export interface Ended {
  readonly code: number | null;
  /** Standard output and standard error, without colours. */
  readonly output: string;
}

export type Files = Readonly<Record<string, string>>;

export class House {
  readonly #copied: readonly string[];
  readonly #files: Files;
  #path: string | undefined;

  /** With copies of these files and folders of the repository, and with `files` planted, once it is built. */
  constructor(copied: readonly string[], files: Files) {
    this.#copied = copied;
    this.#files = files;
  }

  get path(): string {
    if (this.#path === undefined) throw new Error("the house is not built yet");
    return this.#path;
  }

  build(): void {
    this.#path = mkdtempSync(join(tmpdir(), "rollout-canary-"));
    symlinkSync(join(REPOSITORY, "node_modules"), join(this.path, "node_modules"));
    for (const name of this.#copied)
      cpSync(join(REPOSITORY, name), join(this.path, name), { recursive: true });
    this.plant(this.#files);
  }

  plant(files: Files): void {
    for (const [name, text] of Object.entries(files)) {
      const path = join(this.path, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
  }

  read(name: string): string {
    return readFileSync(join(this.path, name), "utf8");
  }

  remove(name = "."): void {
    rmSync(join(this.path, name), { recursive: true });
  }

  /** Runs the check as `make test` does, with `more` arguments. */
  check(name: string, ...more: string[]): Promise<Ended> {
    const check = CHECKS.find((one) => one.name === name);
    if (check === undefined) throw new Error(`no check ${name}`);
    return this.run(...check.command, ...more);
  }

  run(program: string, ...args: string[]): Promise<Ended> {
    const env = {
      ...process.env,
      PATH: `${PROGRAMS}${delimiter}${process.env["PATH"] ?? ""}`,
      NO_COLOR: "1",
      // No test that is planted needs a database.
      ROLLOUT_TEST_POSTGRES_URL: "postgres://127.0.0.1:1/none",
    };
    const child = spawn(program, args, { cwd: this.path, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
    }
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      // The formatter colours what it says on a CI, whatever NO_COLOR says.
      child.once("close", (code) => resolve({ code, output: stripVTControlCharacters(output) }));
    });
  }
}

/** One house for all tests of the suite that calls this. */
export function houseForAll(copied: readonly string[], files: Files = {}): House {
  const house = new House(copied, files);
  before(() => house.build());
  after(() => house.remove());
  return house;
}

/** A new house for each test of the suite that calls this. */
export function houseForEach(copied: readonly string[], files: Files = {}): House {
  const house = new House(copied, files);
  beforeEach(() => house.build());
  afterEach(() => house.remove());
  return house;
}

/** A house for one purpose. */
export async function inHouse<T>(
  copied: readonly string[],
  files: Files,
  use: (house: House) => Promise<T>,
): Promise<T> {
  const house = new House(copied, files);
  house.build();
  try {
    return await use(house);
  } finally {
    house.remove();
  }
}
