// One run of a simulated cluster, from a seed to a verdict: one coordinator, three workers, an operator and a nemesis.
import { newUlid } from "../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { verifyLedger } from "../../src/coordinator/read/verify-ledger.ts";
import { ledgerRecord } from "../../src/coordinator/ledger/tally.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { LEDGER_KEY } from "../../src/storage/keys.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { CallerNode } from "./caller-node.ts";
import { BUDGETS, CoordinatorNode } from "./coordinator-node.ts";
import { Journal } from "./journal.ts";
import { Nemesis } from "./nemesis.ts";
import { Network } from "./network.ts";
import { Operator } from "./operator.ts";
import { SimProcess } from "./process.ts";
import { honest } from "./process-store.ts";
import { drawSettings } from "./settings.ts";
import type { Settings } from "./settings.ts";
import { isFinal } from "./shadow-ledger.ts";
import { short } from "./sim-backend.ts";
import type { Tap } from "./sim-transport.ts";
import { SimTransport } from "./sim-transport.ts";
import type { Variant } from "./variant.ts";
import { Witness } from "./witness.ts";
import { witnessTap } from "./witness-tap.ts";
import { WorkerNode } from "./worker-node.ts";
import { between, Violation, World } from "./world.ts";
import { drawWorkload } from "./workload.ts";

export interface Verdict {
  readonly seed: number;
  /** Undefined when nothing was violated. */
  readonly violation: Error | undefined;
  /** Over every line of the trace: the same seed has the same. */
  readonly hash: string;
  readonly lines: number;
  /** The last lines of the trace. */
  readonly tail: readonly string[];
  readonly settings: Settings;
  readonly simulatedMs: number;
  readonly moments: number;
  readonly executions: number;
  /** Attempts that were forgotten with the power and taken up again. */
  readonly adopted: number;
  /** Failed items that were taken back. */
  readonly retaken: number;
  /** The state of the run at the end. */
  readonly ended: string;
}

/** After the storm a run has so long to come to its end: backoffs of a minute, failure timeouts, several in a row. */
const CALM_MAX_MS = 400_000;
/** Stragglers arrive after the end. */
const AFTERMATH_MS = 3_000;
const MOMENTS_MAX = 1_000_000;
const REPLAY_EVERY = 512;
const TAIL_LINES = 4_000;

const NO_VARIANT: Variant = { name: "none" };

/** Never rejects: what goes wrong is in the verdict. */
export async function simulate(seed: number, variant: Variant = NO_VARIANT): Promise<Verdict> {
  const world = new World(seed);
  const drawn = drawSettings(world.random);
  const settings = variant.settings?.(drawn) ?? drawn;
  const journal = new Journal();
  const witness = new Witness(world, journal, BUDGETS);
  world.say("sim", JSON.stringify(settings));
  let violation: Error | undefined;
  try {
    await run(world, settings, { journal, witness }, variant);
  } catch (thrown) {
    violation = thrown instanceof Error ? thrown : new Violation(String(thrown));
    world.say("sim", `violated: ${violation.message}`);
  }
  const { trace, nowMs, happened } = world;
  return {
    seed,
    violation,
    hash: trace.hash,
    lines: trace.count,
    tail: trace.tail(TAIL_LINES),
    settings,
    simulatedMs: nowMs,
    moments: happened,
    executions: journal.count,
    adopted: witness.adopted,
    retaken: witness.retaken,
    ended: witness.ledger.run?.state ?? "",
  };
}

async function run(
  world: World,
  settings: Settings,
  { journal, witness }: { readonly journal: Journal; readonly witness: Witness },
  variant: Variant,
): Promise<void> {
  const { random } = world;
  const network = new Network(world, { ...settings.network });
  const disk = { ...settings.disk };
  const workload = drawWorkload(world.newRandom(), settings.items, settings.kinds);
  const operatorMachine = { name: "op", disk: new PowerLossStore(), wallOffsetMs: 0, clockRate: 1 };
  const operatorProcess = new SimProcess(world, operatorMachine, 1);
  const { clock } = operatorProcess;
  const runId = newUlid<RunId>(clock, random);
  const common = { world, network, witness, settings, disk, runId };
  const coordinator = new CoordinatorNode({
    ...common,
    store: variant.coordinatorStore ?? ((store: Store) => store),
    carryOut: variant.carryOut ?? honest,
    inspect: variant.inspect ?? (() => undefined),
  });
  const servicesOf = (server: SimProcess): ReturnType<typeof coordinator.servicesOf> =>
    coordinator.servicesOf(server);
  const ids = new Map<string, WorkerId>();
  const taps: Tap[] = [witnessTap(witness, workload, ({ machine }) => ids.get(machine.name))];
  if (variant.tap !== undefined) taps.push(variant.tap({ world, ledger: () => witness.ledger }));
  const newWorker = (number: number): WorkerNode => {
    const workerId = newUlid<WorkerId>(clock, random);
    ids.set(`w${number}`, workerId);
    const options = {
      ...common,
      ...{ journal, number, workerId, taps, servicesOf },
      store: variant.workerStore ?? ((store: Store) => store),
      ...(variant.beginsUnasked && { beginsUnasked: true as const }),
      ...(variant.selfFenceTimeoutMs !== undefined && { selfFenceTimeoutMs: variant.selfFenceTimeoutMs }),
    };
    return new WorkerNode(options, settings.clockRates ? between(random, 0.93, 1.07) : 1);
  };
  const workers: [WorkerNode, ...WorkerNode[]] = [newWorker(1)];
  for (let number = 2; number <= settings.workers; number++) workers.push(newWorker(number));
  const callers = Array.from({ length: settings.callers }, (_, at) => {
    const workerId = newUlid<WorkerId>(clock, random);
    ids.set(`u${at + 1}`, workerId);
    return new CallerNode({ ...common, journal, number: at + 1, workerId, taps, servicesOf });
  });
  const identity = { runId, role: "operator", id: newUlid<RunId>(clock, random) } as const;
  const { transport } = new SimTransport({ network, client: operatorProcess, identity, servicesOf, taps });
  const operator = new Operator(operatorProcess, transport, { workload, steering: settings.steering });
  const nemesis = new Nemesis({
    ...{ world, network, settings, disk, coordinator },
    workers: [...workers, ...callers],
  });

  coordinator.start();
  for (const worker of [...workers, ...callers]) worker.startSoon();
  nemesis.start();
  void operator.work().catch((error: unknown) => world.violate(error));
  await untilOver({ world, settings, coordinator, operator, witness });
  await checkEnd(coordinator, witness);
  witness.checkEnd(workload.kinds);
}

interface Running {
  readonly world: World;
  readonly settings: Settings;
  readonly coordinator: CoordinatorNode;
  readonly operator: Operator;
  readonly witness: Witness;
}

async function untilOver({ world, settings, coordinator, operator, witness }: Running): Promise<void> {
  let overAtMs = Infinity;
  while (world.nowMs < overAtMs || world.nowMs < settings.stormMs) {
    if (operator.isDone && overAtMs === Infinity) overAtMs = world.nowMs + AFTERMATH_MS;
    if (world.nowMs > settings.stormMs + CALM_MAX_MS || world.happened > MOMENTS_MAX) {
      const left = [...witness.ledger.items].filter((item) => !isFinal(item));
      const names = left.map(
        ({ idText, running }) => `${short(idText)} ${running ? `at ${running.worker}` : "pending"}`,
      );
      throw new Violation(`the run does not end; not final: ${names.join(", ")}`);
    }
    if (!(await world.step())) throw new Violation("nothing happens any more");
    if (world.happened % REPLAY_EVERY === 0) await coordinator.checkReplay();
  }
}

/** The rows on the disk are what the ledger's numbers say, and what the coordinator believes. */
async function checkEnd(coordinator: CoordinatorNode, witness: Witness): Promise<void> {
  const { disk } = coordinator.machine;
  await coordinator.checkReplay();
  const bytes = await disk.get(LEDGER_KEY);
  const isEmpty = [...witness.ledger.items].length === 0;
  // It was cancelled before anything came in.
  if (bytes === undefined && isEmpty) return;
  if (bytes === undefined) throw new Violation("there is no ledger");
  const damage = await verifyLedger(disk, okOrFailure("disk", decodeRecord(ledgerRecord, LEDGER_KEY, bytes)));
  if (damage !== undefined) throw new Violation(`the ledger is damaged: ${JSON.stringify(damage)}`);
}
