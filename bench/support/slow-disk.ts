// Preloaded into a process that is measured: a disk on which each write takes so much longer, as on a volume in a network. The
// database's driver is made slow below everything of ours.
import { Level } from "level";
import { sleep, systemClock } from "../../src/base/clock.ts";

const delayMs = Number(process.env["BENCH_DISK_MS"] ?? "0");
interface Writing {
  _batch: (...batch: unknown[]) => Promise<unknown>;
}
const driver = Level.prototype as unknown as Writing;
const write = driver._batch;
driver._batch = async function slowly(this: unknown, ...batch: unknown[]): Promise<unknown> {
  await sleep(systemClock, delayMs);
  return write.apply(this as Writing, batch);
};
