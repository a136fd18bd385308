// A host of children with a starter, as a worker has one.
import { systemClock } from "../../src/base/clock.ts";
import { ChildHost } from "../../src/worker/children/child-host.ts";
import { Starter } from "../../src/worker/children/starter.ts";
import type { Logger } from "../../src/observe/log.ts";

export interface OpenedHost {
  readonly host: ChildHost;
  readonly starter: Starter;
  close(): Promise<void>;
}

/** One for all hosts of this process that are not about it: its start costs more than most of what it starts. It ends with the process. */
let shared: Starter | undefined;

export async function openChildHost(directory: string, log: Logger): Promise<OpenedHost> {
  shared ??= Starter.begin();
  const starter = shared;
  const host = await ChildHost.open({ directory, starter, clock: systemClock, log });
  return { host, starter, close: () => host.close() };
}

/** The same with a starter of its own, which is closed with the host. */
export async function openOwnChildHost(directory: string, log: Logger): Promise<OpenedHost> {
  const starter = Starter.begin();
  const host = await ChildHost.open({ directory, starter, clock: systemClock, log }).catch(
    async (error: unknown) => {
      await starter.close();
      throw error;
    },
  );
  const close = async (): Promise<void> => {
    await host.close();
    await starter.close();
  };
  return { host, starter, close };
}
