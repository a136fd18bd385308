// `npm run recording`: the moving picture of a run for the README, docs/pictures/run.svg. A real `rollout run` on a terminal of its own, of
// which a worker is killed in the middle; the frames are what that terminal showed, at the times at which it did.
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/base/clock.ts";
import { FakeTerminal } from "../test/unit/cli/render/fake-terminal.ts";
import { withDirectory } from "../test/support/temporary-directory.ts";

const PROGRAM = fileURLToPath(new URL("../bin/run.js", import.meta.url));
const PICTURE = fileURLToPath(new URL("../docs/pictures/run.svg", import.meta.url));
const COLUMNS = 96;
const ROWS = 16;
const LINES = 90;
const KILLED_AT = / (?:3\d|4\d)%/;
const WORDS = "run texts.txt --text -o counts.jsonl --workers 3 -- sh -c 'sleep 0.3; wc -w'";
const FRAME_MS = 250;
/** How long the last frame stays. */
const REST_MS = 4_000;
const [CHARACTER_WIDTH, LINE_HEIGHT, PADDING] = [8.4, 19, 14];

interface Frame {
  readonly atMs: number;
  readonly lines: readonly string[];
}

const frames = await withDirectory(record);
writeFileSync(PICTURE, svgOf(frames));
console.log(`${frames.length} frames in ${PICTURE}`);

async function record(directory: string): Promise<Frame[]> {
  const texts = Array.from({ length: LINES }, (_, at) => `${"word ".repeat((at % 9) + 1)}\n`);
  writeFileSync(join(directory, "texts.txt"), texts.join(""));
  const command = `stty cols ${COLUMNS} rows ${ROWS}; "${process.execPath}" "${PROGRAM}" ${WORDS}`;
  const child = spawn("script", ["-q", "-e", "-c", command, "/dev/null"], {
    cwd: directory,
    env: { ...process.env, TERM: "xterm", SHELL: "/bin/sh", LANG: "C.UTF-8", COLUMNS: String(COLUMNS) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const terminal = new FakeTerminal(COLUMNS, ROWS);
  const recorded: Frame[] = [];
  let startMs: number | undefined;
  let isKilled = false;
  terminal.write(`$ rollout ${WORDS}\r\n`);
  for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
    terminal.write(chunk);
    startMs ??= systemClock.monotonicMs();
    const atMs = systemClock.monotonicMs() - startMs;
    const lines = terminal.screen.slice(-ROWS);
    if (!isKilled && KILLED_AT.test(lines.join("\n")))
      isKilled = killWorker(join(directory, "counts.jsonl.rollout"));
    if (atMs - (recorded.at(-1)?.atMs ?? -FRAME_MS) >= FRAME_MS) recorded.push({ atMs, lines });
  }
  const endMs = systemClock.monotonicMs() - (startMs ?? 0);
  return [...recorded, { atMs: endMs, lines: terminal.screen.slice(-ROWS) }];
}

/** The first worker of the run whose directory this is: the process that has its configuration open in its command line. */
function killWorker(directory: string): boolean {
  const pid = readdirSync("/proc").find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return (
        words.includes("worker") && words.includes("run") && words.some((word) => word.startsWith(directory))
      );
    } catch {
      return false;
    }
  });
  if (pid === undefined) throw new Error("no worker of the run is found");
  return process.kill(Number(pid), "SIGKILL");
}

/** Each frame is a group that is seen for its share of the time; programs that do not move pictures show the last one. */
function svgOf(all: readonly Frame[]): string {
  const totalMs = (all.at(-1)?.atMs ?? 0) + REST_MS;
  const width = Math.round(COLUMNS * CHARACTER_WIDTH + 2 * PADDING);
  const rows = Math.max(...all.map(({ lines }) => lines.length));
  const height = rows * LINE_HEIGHT + 2 * PADDING;
  const share = (ms: number): string => `${((100 * ms) / totalMs).toFixed(2)}%`;
  const styles = all.map(({ atMs }, at) => {
    const endMs = all[at + 1]?.atMs ?? totalMs;
    const shown = `${share(atMs)},${share(endMs - 0.01)}{opacity:1}`;
    const hidden = [
      at === 0 ? "" : `0%,${share(atMs - 0.01)}{opacity:0}`,
      at === all.length - 1 ? "" : `${share(endMs)},100%{opacity:0}`,
    ];
    return `@keyframes f${at}{${hidden[0] ?? ""}${shown}${hidden[1] ?? ""}}.f${at}{animation:f${at} ${totalMs / 1_000}s step-end infinite}`;
  });
  const groups = all.map(({ lines }, at) => {
    const texts = lines.map((line, row) => lineSvg(line, PADDING + (row + 0.8) * LINE_HEIGHT));
    return `<g class="f${at}" opacity="${at === all.length - 1 ? 1 : 0}">${texts.join("")}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A run on a terminal: progress, a worker that is killed and started again, and the end">
<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dbe0;white-space:pre}.bar{fill:#5fb76b}.first{fill:#fff;font-weight:600}${styles.join("")}</style>
<rect width="${width}" height="${height}" rx="8" fill="#16191d"/>
${groups.join("\n")}
</svg>
`;
}

function lineSvg(line: string, y: number): string {
  const style = line.startsWith("$") ? ' class="first"' : /[█▕]/.test(line) ? ' class="bar"' : "";
  const escaped = line.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${PADDING}" y="${y.toFixed(1)}" xml:space="preserve"${style}>${escaped}</text>`;
}
