// Processes by what they were given: those of a program and everything that it has started, whoever their parent is by now.
import { readdir, readFile } from "node:fs/promises";

/** Ids of processes with this text in their command line or their environment. */
export async function processesOf(text: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [words, environment] = await Promise.all(
        ["cmdline", "environ"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "")),
      );
      return `${words ?? ""}${environment ?? ""}`.includes(text);
    }),
  );
  return pids.filter((pid, at) => found[at] === true && pid !== process.pid);
}
