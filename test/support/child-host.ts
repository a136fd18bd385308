// A host of children with a starter of its own, as a worker has one.
import { systemClock } from "../../src/base/clock.ts";
import { ChildHost } from "../../src/worker/children/child-host.ts";
import { Starter } from "../../src/worker/children/starter.ts";
import type { Logger } from "../../src/observe/log.ts";

export interface OpenedHost {
  readonly host: ChildHost;
  readonly starter: Starter;
  close(): Promise<void>;
}

export async function openChildHost(directory: string, log: Logger): Promise<OpenedHost> {
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
