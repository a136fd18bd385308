// Debian's Prometheus on a free port of loopback, where it is installed (scripts/setup-extras.ts), and its promtool. It ends with this process: a shell
// beside it waits for the end of its input.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/listeners.ts";

const KEEPER = `
prometheus --config.file=prometheus.yml --storage.tsdb.path=series --web.listen-address="127.0.0.1:$1" --log.level=warn >log 2>&1 &
while read -r _; do :; done
kill -KILL $!
wait
`;

/** The labels of a series and its value now. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Rule {
  readonly name: string;
  readonly state: string;
  readonly health: string;
  readonly lastError?: string;
}

export interface Prometheus {
  /** Rejects with what Prometheus says of an expression that it does not understand. */
  query(expression: string): Promise<Sample[]>;
  /** The rules that were evaluated. */
  rules(): Promise<Rule[]>;
  close(): Promise<void>;
}

export function demandPrometheus(): void {
  for (const program of ["prometheus", "promtool"])
    if (spawnSync("which", [program]).status !== 0)
      throw new Error(`${program} is not here; on Debian: apt-get install prometheus`);
}

/** Runs promtool and returns both of its streams. Throws when it complains. */
export function promtool(args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`promtool ${args.join(" ")} ended with ${String(status)}:\n${stdout}${stderr}`);
  return `${stdout}${stderr}`;
}

/** `directory` has `prometheus.yml`. */
export async function startPrometheus(directory: string): Promise<Prometheus> {
  const port = await freePort();
  const keeper = spawn("sh", ["-c", KEEPER, "sh", String(port)], {
    cwd: directory,
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const exited = new Promise((resolve) => keeper.once("exit", resolve));
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    const { status, data, error } = (await response.json()) as Record<string, unknown>;
    if (status !== "success") throw new Error(String(error));
    return data;
  };
  const close = async (): Promise<void> => {
    keeper.stdin.end();
    await exited;
  };
  await eventually("Prometheus is ready", async () => {
    const response = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined);
    return response?.ok;
  }).catch(async (error: unknown) => {
    await close();
    throw new Error(readFileSync(join(directory, "log"), "utf8"), { cause: error });
  });
  return {
    query: async (expression) => {
      const { result } = (await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)) as Answer;
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    rules: async () => {
      const { groups } = (await ask("/api/v1/rules")) as { groups: { rules: Rule[] }[] };
      return groups.flatMap(({ rules }) => rules).filter(({ health }) => health !== "unknown");
    },
    close,
  };
}

interface Answer {
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    readonly value: readonly [number, string];
  }[];
}
