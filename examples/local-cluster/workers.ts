// What the coordinator's events say of each worker, as a table and as a summary.
import type { Clock } from "../../src/base/clock.ts";
import { renderTable } from "../../src/cli/render/table.ts";
import type { ClusterEvent } from "./member.ts";

interface Row {
  readonly id: string;
  readonly name: string;
  readonly pid: number;
  state: string;
  liveness: string;
  beats: number;
  heardAtMs: number;
  killedAtMs: number | undefined;
  suspectedAtMs: number | undefined;
  failedAtMs: number | undefined;
  failures: number;
  doubts: number;
}

const NAMES = ["A", "B", "C", "D"];

export class Workers {
  readonly #clock: Clock;
  readonly #rows = new Map<string, Row>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  started(id: string, pid: number): void {
    this.#row(id, pid);
  }

  killed(id: string): void {
    this.#row(id).killedAtMs = this.#clock.monotonicMs();
  }

  /** "A", "B", …: easier to follow than 26 characters. */
  nameOf(id: string): string {
    return this.#row(id).name;
  }

  take(event: ClusterEvent): void {
    const { topic, worker_id: id, state } = event;
    if (typeof id !== "string") return;
    const row = this.#row(id);
    const nowMs = this.#clock.monotonicMs();
    if (topic === "worker_heartbeat") {
      row.beats++;
      row.heardAtMs = nowMs;
      row.liveness = "alive";
      row.suspectedAtMs = undefined;
      row.state = String(state).toLowerCase();
    } else if (topic === "worker_suspected") {
      row.liveness = "suspected";
      row.suspectedAtMs = nowMs;
      row.doubts++;
    } else if (topic === "worker_failed") {
      row.liveness = "failed";
      row.failedAtMs = nowMs;
      row.failures++;
    } else if (topic === "worker_deregistered") {
      row.state = "gone";
    }
  }

  table(): string {
    const nowMs = this.#clock.monotonicMs();
    return renderTable<Row>(
      [
        { title: "", value: ({ name }) => name },
        { title: "worker", value: ({ id }) => id },
        { title: "pid", value: ({ pid }) => (pid === 0 ? "" : String(pid)), align: "right" },
        { title: "state", value: ({ state }) => state.padEnd("draining".length) },
        {
          title: "liveness",
          value: (row) => (row.state === "gone" ? "-" : row.liveness).padEnd("suspected".length),
        },
        { title: "beats", value: ({ beats }) => String(beats), align: "right" },
        { title: "last heard", value: ({ heardAtMs }) => seconds(nowMs - heardAtMs), align: "right" },
      ],
      [...this.#rows.values()],
    );
  }

  /** In plain words, from what was seen. */
  summary(): string {
    const rows = [...this.#rows.values()];
    const beats = rows.reduce((sum, row) => sum + row.beats, 0);
    const named = (found: readonly Row[]): string => found.map(({ name }) => name).join(" and ");
    const left = rows.filter(({ state }) => state === "gone");
    const undoubted = rows.filter(({ doubts, state }) => doubts === 0 && state !== "gone");
    const lines = [`${rows.length} workers joined over mutual TLS and sent ${beats} heartbeats.`];
    for (const { name, killedAtMs, suspectedAtMs, failedAtMs, failures } of rows) {
      if (killedAtMs === undefined || suspectedAtMs === undefined || failedAtMs === undefined) continue;
      const [suspicion, failure] = [suspectedAtMs - killedAtMs, failedAtMs - killedAtMs].map(seconds);
      const times = failures === 1 ? "once" : `${failures} times`;
      lines.push(
        `${name} was killed: suspected ${String(suspicion)} later, failed ${String(failure)} later, reported ${times}.`,
      );
    }
    if (left.length > 0)
      lines.push(`${named(left)} was told to stop: it said goodbye, which is not a failure.`);
    if (undoubted.length > 0) lines.push(`${named(undoubted)} was never doubted.`);
    return lines.join("\n");
  }

  #row(id: string, pid = 0): Row {
    const known = this.#rows.get(id);
    if (known !== undefined && (pid === 0 || known.pid === pid)) return known;
    const fresh = {
      name: NAMES[this.#rows.size] ?? id.slice(-4),
      state: "init",
      liveness: "alive",
      beats: 0,
      heardAtMs: this.#clock.monotonicMs(),
      killedAtMs: undefined,
      suspectedAtMs: undefined,
      failedAtMs: undefined,
      failures: 0,
      doubts: 0,
    };
    const row: Row = { ...fresh, ...known, id, pid };
    this.#rows.set(id, row);
    return row;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
