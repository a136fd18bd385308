// The mock backend as a manifest or the configuration describes it.
import type { WorkerId } from "../base/ids.ts";
import type { MockSpec } from "../config/manifest-fields.ts";
import { openExecutionJournal, MockBackend } from "../worker/backends/mock/mock-backend.ts";
import type { SleepDistribution } from "../worker/backends/mock/mock-backend.ts";
import type { ProcessPorts } from "./process-ports.ts";

/** Throws file_unwritable for its journal. */
export function mockBackend(
  mock: MockSpec,
  { clock, random, workerId }: Pick<ProcessPorts, "clock" | "random"> & { readonly workerId: WorkerId },
): MockBackend {
  const { journal: file, failurePercent } = mock;
  const options = { clock, random, sleep: sleepOf(mock), failureRate: failurePercent / 100 };
  return new MockBackend(
    file === undefined ? options : { ...options, journal: openExecutionJournal(file, workerId) },
  );
}

function sleepOf({ sleepMs, distribution }: MockSpec): SleepDistribution {
  switch (distribution) {
    case "constant":
      return { kind: "constant", ms: sleepMs };
    case "uniform":
      return { kind: "uniform", minMs: 0, maxMs: 2 * sleepMs };
    case "exponential":
      return { kind: "exponential", meanMs: sleepMs };
  }
}
