// Preloaded into a process that is measured: a disk on which each write takes so much longer, as on a volume in a network. The
// database's driver is made slow below everything of ours.
import { Level } from "level";
import { sleep, systemClock } from "../../src/base/clock.ts";

const delayMs = Number(process.env["BENCH_DISK_MS"] ?? "0");
interface Chain {
  write(...options: unknown[]): Promise<unknown>;
}
interface Writing {
  batch: (...batch: unknown[]) => Chain | Promise<unknown>;
}
const driver = Level.prototype as unknown as Writing;
const begin = driver.batch;
const late = (): Promise<void> => sleep(systemClock, delayMs);
driver.batch = function slowly(this: unknown, ...batch: unknown[]): Chain | Promise<unknown> {
  if (batch.length > 0) return late().then(() => begin.apply(this as Writing, batch));
  const chain = begin.call(this as Writing) as Chain;
  const write = chain.write.bind(chain);
  chain.write = (...options) => late().then(() => write(...options));
  return chain;
};
