// A cluster that one coordinator after the other leads, over real listeners, and an operator who asks whoever leads.
// Everything is closed after each test.
import { useClosers } from "./closers.ts";
import type { CoordinatorTestOptions, ListeningCoordinator, TestCluster } from "./test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "./test-coordinator.ts";
import { workerClient } from "./worker-client.ts";
import type { WorkerClient } from "./worker-client.ts";

export interface LedCluster {
  readonly cluster: TestCluster;
  /** The one that leads. */
  readonly listening: ListeningCoordinator;
  readonly operator: WorkerClient;
  /** The coordinator ends in good order, and the next one leads at the same address, with other options if there are some. */
  restart(options?: CoordinatorTestOptions): Promise<void>;
  /** Another caller; a worker, unless said. */
  join(options?: Parameters<typeof workerClient>[1]): Promise<WorkerClient>;
  closeLater(close: () => unknown): void;
}

/** To be called in a `describe`: there is one before each test. Each coordinator is started with what `optionsOf` says. */
export function useLedCluster(
  optionsOf: (cluster: TestCluster) => CoordinatorTestOptions = () => ({}),
): LedCluster {
  const closeLater = useClosers();
  let cluster: TestCluster;
  let listening: ListeningCoordinator;
  let operator: WorkerClient;

  const lead = async (port: number, options: CoordinatorTestOptions = {}): Promise<void> => {
    const all = { port, ...optionsOf(cluster), ...options };
    const started = (listening = await startListeningCoordinator(cluster, all));
    closeLater(() => started.stop());
  };
  const join = async (options: Parameters<typeof workerClient>[1]): Promise<WorkerClient> => {
    const joined = await workerClient(listening, options);
    closeLater(joined.close);
    return joined;
  };
  beforeEach(async () => {
    cluster = await newTestCluster();
    await lead(0);
    operator = await join({ role: "operator" });
  });

  return {
    get cluster() {
      return cluster;
    },
    get listening() {
      return listening;
    },
    get operator() {
      return operator;
    },
    restart: async (options) => {
      const { port } = listening.server;
      await listening.stop();
      await lead(port, options);
    },
    join,
    closeLater,
  };
}
