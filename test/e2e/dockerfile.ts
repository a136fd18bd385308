// A Dockerfile carried out without Docker, each stage in a directory of its own that stands for the image's root. It knows
// what ours uses and refuses the rest: a step that was skipped would be a step that was not tested.
import { execFile } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export interface BuiltImage {
  /** Stands for `/`. */
  readonly root: string;
  readonly workingDirectory: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly user: string;
}

interface Stage {
  readonly root: string;
  workdir: string;
  env: Record<string, string>;
  entrypoint: readonly string[];
  user: string;
}

export interface BuildOptions {
  /** Copies the build's context, without what .dockerignore names, into a directory. */
  readonly copyContext: (to: string) => void;
  /** Where the stages are made. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string>>;
  /** Commands that are carried out in place of others: each comes to the same, and the caller has seen that. */
  readonly inPlaceOf?: Readonly<Record<string, string>>;
}

export async function buildImage(dockerfile: string, options: BuildOptions): Promise<BuiltImage> {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const [instruction, rest] of instructionsOf(dockerfile)) {
    if (instruction === "FROM") {
      const name = / AS (\w+)$/.exec(rest)?.[1] ?? "final";
      stage = {
        root: join(options.directory, name),
        workdir: "/",
        env: { ...options.env },
        entrypoint: [],
        user: "root",
      };
      mkdirSync(stage.root, { recursive: true });
      stages.set(name, stage);
      continue;
    }
    if (stage === undefined) throw new Error(`${instruction} before any FROM`);
    await carryOut(stage, instruction, rest, stages, options);
  }
  if (stage === undefined) throw new Error("a Dockerfile has a stage");
  return { ...stage, workingDirectory: join(stage.root, stage.workdir) };
}

/** Comments and empty lines are none. */
function instructionsOf(dockerfile: string): [string, string][] {
  return dockerfile
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => [line.split(" ", 1)[0] ?? "", line.slice(line.indexOf(" ") + 1)]);
}

async function carryOut(
  stage: Stage,
  instruction: string,
  rest: string,
  stages: ReadonlyMap<string, Stage>,
  { copyContext, inPlaceOf = {} }: BuildOptions,
): Promise<void> {
  switch (instruction) {
    case "WORKDIR":
      stage.workdir = rest;
      mkdirSync(join(stage.root, rest), { recursive: true });
      return;
    case "COPY":
      return copy(stage, rest, stages, copyContext);
    case "RUN":
      await execute("sh", ["-c", inPlaceOf[rest] ?? rest], {
        cwd: join(stage.root, stage.workdir),
        env: stage.env,
      });
      return;
    case "ENV": {
      const [name = "", value = ""] = rest.split("=", 2);
      stage.env[name] = value
        .split(":")
        .map((part) => (part === `$${name}` ? (stage.env[name] ?? "") : join(stage.root, part)))
        .join(":");
      return;
    }
    case "ENTRYPOINT":
      stage.entrypoint = JSON.parse(rest) as string[];
      return;
    case "USER":
      stage.user = rest;
      return;
    case "VOLUME":
    case "EXPOSE":
    case "CMD":
      return;
    default:
      throw new Error(`this does not know ${instruction}`);
  }
}

function copy(
  stage: Stage,
  rest: string,
  stages: ReadonlyMap<string, Stage>,
  copyContext: (to: string) => void,
): void {
  const to = join(stage.root, stage.workdir);
  if (rest === ". .") return copyContext(to);
  const [, name, from, where] = /^--from=(\w+) (\S+) (\S+)$/.exec(rest) ?? [];
  const source = stages.get(name ?? "");
  if (source === undefined || from === undefined || where !== ".")
    throw new Error(`this does not know COPY ${rest}`);
  cpSync(join(source.root, from), to, { recursive: true });
}
