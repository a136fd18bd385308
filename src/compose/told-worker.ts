// A worker's charts, told to the inspector that `inspect.stately` names: its drain, and some of the attempts that it executes.
import type { WorkerId } from "../base/ids.ts";
import { StatelySender } from "../inspector/stately-sender.ts";
import type { ToldActor } from "../inspector/told-charts.ts";
import type { ChartStep } from "../runtime/driver.ts";
import type { ProcessPorts } from "./process-ports.ts";

/** Attempts that are told of at once, and of those that begin within a second. */
const ATTEMPTS_TOLD = 16;
const SECOND_MS = 1_000;
const NAME_DIGITS = 12;

export class ToldWorker {
  readonly #workerId: WorkerId;
  readonly #ports: ProcessPorts;
  readonly #sender: StatelySender;
  readonly #attempts = new Set<string>();
  #second = 0;
  #begunInSecond = 0;

  constructor(url: string, workerId: WorkerId, ports: ProcessPorts) {
    this.#workerId = workerId;
    this.#ports = ports;
    this.#sender = new StatelySender({ url, ...ports });
  }

  readonly onStep = (step: ChartStep): void => {
    switch (step.chart) {
      case "spot-drain":
        return this.#drainStepped(step);
      case "execution":
        return this.#attemptStepped(step);
      // The charts of a worker of 0.1 may be in its store too: nothing reads them.
      default:
        return;
    }
  };

  close(): void {
    this.#sender.close();
  }

  #drainStepped({ event, from, to, context }: ChartStep): void {
    const sessionId = this.#rootId;
    const facts = { ...(context as object), worker_id: this.#workerId };
    const name = `worker ${this.#workerId}`;
    const root = { sessionId, chart: "spot-drain", name, rootId: sessionId, parentId: undefined } as const;
    if (from === "") this.#sender.place(root, to, facts);
    else this.#sender.step(sessionId, { event, state: to, facts, atMs: this.#ports.clock.wallMs() });
  }

  #attemptStepped({ address, event, from, to }: ChartStep): void {
    const [, item = "", attempt = ""] = address.split("/");
    const sessionId = `execution/${this.#workerId}/${item}/${attempt}`;
    if (from === "" && this.#mayBeTold()) {
      this.#attempts.add(sessionId);
      const name = `attempt ${attempt} of ${item.slice(0, NAME_DIGITS)}`;
      const parts = {
        sessionId,
        chart: "execution",
        name,
        rootId: this.#rootId,
      } satisfies Partial<ToldActor>;
      const facts = { item, attempt: Number(attempt) };
      return this.#sender.place({ ...parts, parentId: this.#rootId }, to, facts);
    }
    if (!this.#attempts.has(sessionId)) return;
    if (to !== "")
      return this.#sender.step(sessionId, { event, state: to, atMs: this.#ports.clock.wallMs() });
    this.#attempts.delete(sessionId);
    this.#sender.end(sessionId);
  }

  #mayBeTold(): boolean {
    const second = Math.floor(this.#ports.clock.monotonicMs() / SECOND_MS);
    if (second !== this.#second) [this.#second, this.#begunInSecond] = [second, 0];
    return this.#attempts.size < ATTEMPTS_TOLD && this.#begunInSecond++ < ATTEMPTS_TOLD;
  }

  get #rootId(): string {
    return `spot-drain/${this.#workerId}`;
  }
}
