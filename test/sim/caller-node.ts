// A machine with a worker on it that only makes calls. It keeps nothing: what a process of it had is gone with the process.
import { newUlid, ulidToBytes } from "../../src/base/ids.ts";
import type { IncarnationId } from "../../src/base/ids.ts";
import { Caller } from "./caller.ts";
import type { SimProcess } from "./process.ts";
import { WorkerMachine } from "./worker-machine.ts";
import type { WorkerMachineOptions } from "./worker-machine.ts";
import { between, happens } from "./world.ts";

const SILENT_CHANCE = 0.3;
const LATE_CHANCE = 0.3;
const LATE_MAX_MS = 15_000;
const GIVES_UP_CHANCE = 0.5;

export class CallerNode extends WorkerMachine {
  readonly #options: WorkerMachineOptions;
  #hasStarted = false;

  constructor(options: WorkerMachineOptions) {
    super(options, "u");
    this.#options = options;
  }

  protected override run(process: SimProcess): void {
    super.run(process);
    const { world, settings, workerId } = this.#options;
    const { clock, random } = process;
    // It has no disk to remember the last one by: its clock is set before it starts.
    const wall = { ...clock, wallMs: () => clock.wallMs() - this.machine.wallOffsetMs };
    const worker = {
      workerId: ulidToBytes(workerId),
      incarnation: ulidToBytes(newUlid<IncarnationId>(wall, random)),
    };
    const transport = this.connect(process);
    const backend = this.backend(process);
    const isSilent = this.#hasStarted && happens(random, SILENT_CHANCE);
    this.#hasStarted = true;
    const lateMs = happens(random, LATE_CHANCE) ? between(random, 0, LATE_MAX_MS) : 0;
    const asksAfterMs = isSilent ? Infinity : lateMs;
    const givesUpAsking = happens(random, GIVES_UP_CHANCE);
    const { slots } = settings;
    const fail = (error: unknown): void => world.violate(error);
    const options = { process, transport, worker, slots, backend, asksAfterMs, givesUpAsking, fail };
    new Caller(options).live().catch(fail);
  }

  /** It hears no notice: its machine is gone when its time has come. */
  override preempt(leadMs: number): void {
    this.process?.after(leadMs, () => this.losePower());
  }

  /** It does not say so. */
  override putAtRisk(): void {
    this.process?.say("is at risk, and does not know");
  }
}
