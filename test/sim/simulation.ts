// One run of a simulated cluster, from a seed to a verdict: coordinators, three workers, an operator and a nemesis.
import { newUlid } from "../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { verifyLedger } from "../../src/coordinator/read/verify-ledger.ts";
import { ledgerRecord } from "../../src/coordinator/ledger/tally.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { LEDGER_KEY } from "../../src/storage/keys.ts";
import { PowerLossStore } from "../support/power-loss-store.ts";
import type { LeaseTiming } from "../../src/coordinator/lead/elector-storage.ts";
import type { Batch, Store } from "../../src/storage/store.ts";
import { CallerNode } from "./caller-node.ts";
import { BUDGETS, CoordinatorNode } from "./coordinator-node.ts";
import { namesOfActors } from "./actor-machine.ts";
import type { Release } from "../../src/client/releases.ts";
import { Coordinators } from "./coordinators.ts";
import { FleetMachine } from "./fleet-machine.ts";
import { Journal } from "./journal.ts";
import type { LedgerHome } from "./ledger-home.ts";
import { ownDisk, SharedDatabase } from "./ledger-home.ts";
import { Nemesis } from "./nemesis.ts";
import type { Victim } from "./nemesis.ts";
import { Network } from "./network.ts";
import { Operator } from "./operator.ts";
import type { CheckpointStore } from "../../src/worker/partitions/checkpoint-store.ts";
import { SimCheckpoints } from "./sim-checkpoints.ts";
import { SimFleet } from "./sim-fleet.ts";
import type { SimFleetOptions } from "./sim-fleet.ts";
import { SimProcess } from "./process.ts";
import type { CommitWitness, DiskWeather } from "./process-store.ts";
import { drawSettings, withItemsFor } from "./settings.ts";
import type { Settings } from "./settings.ts";
import { isFinal } from "./shadow-ledger.ts";
import { short } from "./sim-backend.ts";
import type { Services, Tap } from "./sim-transport.ts";
import { SimTransport } from "./sim-transport.ts";
import type { Variant } from "./variant.ts";
import { Witness } from "./witness.ts";
import { witnessTap } from "./witness-tap.ts";
import { WorkerNode } from "./worker-node.ts";
import type { WorkerNodeOptions } from "./worker-node.ts";
import { between, Violation, SimWorld } from "./world.ts";
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
  /** How often somebody came to lead. */
  readonly leaderships: number;
  /** Attempts that were forgotten with the power and taken up again. */
  readonly adopted: number;
  /** Failed items that were taken back. */
  readonly retaken: number;
  /** The state of the run at the end. */
  readonly ended: string;
  /** The state of its last release at the end, empty where it had none; and attempts of candidates that have started. */
  readonly release: string;
  readonly trials: number;
  /** Machines of its fleet. */
  readonly launched: number;
}

/** After the storm a run has so long to come to its end: backoffs of a minute, failure timeouts, several in a row. */
const CALM_MAX_MS = 400_000;
/** Stragglers arrive after the end, and processes that were stopped or cut off until the storm was over go on. */
const AFTERMATH_MS = 3_000;
/** A leader has seen in lists that the last machine is gone. */
const FLEET_AFTERMATH_MS = 30_000;
const ORPHAN_MS = 60_000;
/** Workers of fleets have the numbers from here on. */
const FIRST_OF_FLEET = 100;
/** After the storm somebody leads for good within this time, counted anew when a leader hears of an older copy and halts. */
const LEASES_SETTLE_MS = 20_000;
const TIMING: LeaseTiming = { ttlMs: 5_000, renewalMs: 1_000, deadlineMs: 4_000 };
const MOMENTS_MAX = 1_000_000;
const REPLAY_EVERY = 512;
const TAIL_LINES = 4_000;

const NO_VARIANT: Variant = { name: "none" };

/** `coordinators`: one, or several over a database; as the seed has it unless said. Never rejects: what goes wrong is in the verdict. */
export async function simulate(
  seed: number,
  variant: Variant = NO_VARIANT,
  coordinators?: number,
): Promise<Verdict> {
  const world = new SimWorld(seed);
  const drawn = drawSettings(world.random, coordinators);
  // A broken cluster has a release where it is about one, and else is what it was before there were any.
  const whole = variant === NO_VARIANT ? drawn : { ...drawn, release: undefined };
  const settings = withItemsFor(variant.settings?.(whole) ?? whole);
  const journal = new Journal();
  const witness = new Witness(world, journal, BUDGETS, settings);
  world.say("sim", JSON.stringify(settings));
  let violation: Error | undefined;
  const seen: Seen = { launched: () => 0 };
  try {
    await run(world, settings, { journal, witness, seen }, variant);
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
    leaderships: witness.leaderships,
    adopted: witness.adopted,
    retaken: witness.retaken,
    ended: witness.ledger.run?.state ?? "",
    release: witness.releases.latest?.state ?? "",
    trials: witness.releases.trials,
    launched: seen.launched(),
  };
}

interface Seen {
  launched: () => number;
}

async function run(
  world: SimWorld,
  settings: Settings,
  { journal, witness, seen }: { readonly journal: Journal; readonly witness: Witness; readonly seen: Seen },
  variant: Variant,
): Promise<void> {
  const { random } = world;
  const network = new Network(world, { ...settings.network });
  const disk = { ...settings.disk };
  const workload = drawWorkload(world.newRandom(), settings);
  if (settings.skipsFailed) for (const { key } of workload.batches.flat()) witness.skipAsked(key);
  const operatorMachine = { name: "op", disk: new PowerLossStore(), wallOffsetMs: 0, clockRate: 1 };
  const operatorProcess = new SimProcess(world, operatorMachine, 1);
  const { clock } = operatorProcess;
  const runId = newUlid<RunId>(clock, random);
  const home = homeOf({ world, settings, disk, witness, variant });
  const shared = home instanceof SharedDatabase ? home : undefined;
  const common = { world, network, witness, settings, disk, runId, home };
  const fleet = fleetOf(
    { world, settings, witness, variant },
    {
      rows: () => home.rows(coordinators.all[0].machine),
      newMachine: (id, onEnded) => newMachine(id, onEnded),
    },
  );
  if (fleet !== undefined) seen.launched = () => fleet.witness.launched;
  const newCoordinator = (name: string): CoordinatorNode =>
    new CoordinatorNode({
      ...common,
      ...{ name, fleet },
      timing: variant.timing ?? TIMING,
      remembers: shared !== undefined && variant.forgets !== true,
      clockRate: shared !== undefined && settings.clockRates ? between(random, 0.93, 1.07) : 1,
      store: variant.coordinatorStore ?? ((store: Store) => store),
      elector: variant.elector ?? ((elector) => elector),
      inspect: variant.inspect ?? (() => undefined),
    });
  const [firstName, ...otherNames] = namesOf(settings.coordinators);
  const all = [newCoordinator(firstName), ...otherNames.map(newCoordinator)] as const;
  const coordinators = new Coordinators(all, all.length > 1 ? world.newRandom() : random);
  const { addresses } = coordinators;
  const servicesOf = (server: SimProcess): Services | undefined => coordinators.servicesOf(server);
  const ids = new Map<string, WorkerId>();
  const taps: Tap[] = [witnessTap(witness, workload, ({ machine }) => ids.get(machine.name))];
  if (variant.tap !== undefined) taps.push(variant.tap({ world, ledger: () => witness.ledger }));
  const checkpoints = new SimCheckpoints();
  const { checkpointStore = (store: CheckpointStore) => store } = variant;
  const workerOptions = (number: number, workerId: WorkerId): WorkerNodeOptions => {
    ids.set(`w${number}`, workerId);
    return {
      ...common,
      ...{ journal, number, workerId, taps, addresses, servicesOf },
      store: variant.workerStore ?? ((store: Store) => store),
      checkpoints: settings.hasCheckpoints
        ? (process: SimProcess) => checkpointStore(checkpoints.of(process))
        : undefined,
      ...(variant.beginsUnasked && { beginsUnasked: true as const }),
      ...(variant.selfFenceTimeoutMs !== undefined && { selfFenceTimeoutMs: variant.selfFenceTimeoutMs }),
    };
  };
  const newWorker = (number: number): WorkerNode => {
    const options = workerOptions(number, newUlid<WorkerId>(clock, random));
    return new WorkerNode(options, settings.clockRates ? between(random, 0.93, 1.07) : 1);
  };
  const workers: [WorkerNode, ...WorkerNode[]] = [newWorker(1)];
  for (let number = 2; number <= settings.workers; number++) workers.push(newWorker(number));
  const callers = Array.from({ length: settings.callers }, (_, at) => {
    const workerId = newUlid<WorkerId>(clock, random);
    ids.set(`u${at + 1}`, workerId);
    return new CallerNode({ ...common, journal, number: at + 1, workerId, taps, addresses, servicesOf });
  });
  const identity = { runId, role: "operator", id: newUlid<RunId>(clock, random) } as const;
  const ends = { network, client: operatorProcess, identity, addresses, servicesOf, taps };
  const { transport } = new SimTransport(ends);
  const operator = new Operator(operatorProcess, transport, {
    ...{ workload, steering: settings.steering, release: settings.release },
    actors: settings.hasActors ? namesOfActors(settings.keys) : [],
    skips: (key) => witness.skipAsked(key),
    pauses: (key) => witness.pauseAsked(key),
    fail: (error) => world.violate(error),
  });
  const victims: [Victim, ...Victim[]] = [...workers, ...callers];
  const newMachine = (id: string, onEnded: () => void): FleetMachine => {
    const stay = { orphanMs: ORPHAN_MS, lifetimeMs: null, idleMs: null };
    const number = FIRST_OF_FLEET + victims.length;
    const node = new FleetMachine({ ...workerOptions(number, id as WorkerId), stay }, onEnded);
    victims.push(node);
    return node;
  };
  const onHealed = (): void => fleet?.provider.calm();
  const nemesis = new Nemesis({
    ...{ world, network, settings, disk, coordinators, shared },
    ...{ workers: victims, onHealed },
  });

  if (shared !== undefined)
    witness.share({
      living: () => coordinators.all.flatMap(({ process }) => process ?? []),
      onOlderCopy: () => operator.storeWentBack(),
      believers: () => shared.believers(),
      calmFromMs: settings.stormMs,
      settleMs: LEASES_SETTLE_MS,
    });
  coordinators.start();
  for (const worker of [...workers, ...callers]) worker.startSoon();
  nemesis.start();
  void operator.work().catch((error: unknown) => world.violate(error));
  await untilOver({ world, settings, coordinators, operator, witness, fleet });
  await fleet?.witness.checkEnd(fleet.provider.alive);
  await checkEnd(coordinators, witness, home);
  witness.checkEnd(workload.kinds, operator.isShut);
  if (settings.release !== undefined) witness.releases.checkEnd(await seenRelease(world, operator));
  if (shared !== undefined) checkLeases(shared);
}

/** The world goes on until the operator has seen it. */
async function seenRelease(world: SimWorld, operator: Operator): Promise<Release | undefined> {
  const seen: { isThere: boolean; release?: Release | undefined } = { isThere: false };
  operator.latestRelease().then(
    (release) => Object.assign(seen, { isThere: true, release }),
    (error: unknown) => world.violate(error),
  );
  while (!seen.isThere) if (!(await world.step())) throw new Violation("nothing happens any more");
  return seen.release;
}

/** One machine has its ledger on its own disk; several share a database. */
function homeOf(parts: {
  readonly world: SimWorld;
  readonly settings: Settings;
  readonly disk: DiskWeather;
  readonly witness: Witness;
  readonly variant: Variant;
}): LedgerHome {
  const { world, settings, disk, witness, variant } = parts;
  const { timing = TIMING, afterLoss = "doubts", carriedOut = (batch: Batch) => batch } = variant;
  if (settings.coordinators === 1) {
    const committed: CommitWitness = (by, batch, outcome) => witness.committed(by, batch, outcome);
    return ownDisk(world, disk, { witness: committed, carriedOut });
  }
  const weather = { ...settings.database };
  return new SharedDatabase({ world, weather, witness, carriedOut, timing, afterLoss });
}

function namesOf(coordinators: number): [string, ...string[]] {
  return coordinators === 1
    ? ["c"]
    : ["c1", ...Array.from({ length: coordinators - 1 }, (_, at) => `c${at + 2}`)];
}

/** The calls of all coordinators on the lease are as if one had come after the other. */
function checkLeases({ history }: SharedDatabase): void {
  const finding = history.find();
  if (finding.kind === "linearizable") return;
  const next = finding.next.map((index) => JSON.stringify(history.calls[index]));
  throw new Violation(
    `the calls on the lease have no order: after ${finding.state} none of ${next.join(", ")}`,
  );
}

/** Undefined for a run without one. */
function fleetOf(
  parts: {
    readonly world: SimWorld;
    readonly settings: Settings;
    readonly witness: Witness;
    readonly variant: Variant;
  },
  ways: Pick<SimFleetOptions, "rows" | "newMachine">,
): SimFleet | undefined {
  const { world, settings, witness, variant: seams } = parts;
  const { fleet: mix } = settings;
  return mix && new SimFleet({ ...ways, world, mix, seams, hasGoneBack: () => witness.hasGoneBack });
}

interface Running {
  readonly world: SimWorld;
  readonly settings: Settings;
  readonly coordinators: Coordinators;
  readonly operator: Operator;
  readonly witness: Witness;
  readonly fleet: SimFleet | undefined;
}

async function untilOver(running: Running): Promise<void> {
  const { world, settings, coordinators, operator, witness, fleet } = running;
  let overAtMs = Infinity;
  const aftermathMs = fleet === undefined ? AFTERMATH_MS : FLEET_AFTERMATH_MS;
  while (world.nowMs < overAtMs) {
    if (!operator.isDone || fleet?.isOver === false) overAtMs = Infinity;
    // Processes that stood still until the storm was over are judged by what they do when they go on.
    else if (overAtMs === Infinity) overAtMs = Math.max(world.nowMs, settings.stormMs) + aftermathMs;
    if (world.nowMs > settings.stormMs + CALM_MAX_MS || world.happened > MOMENTS_MAX) {
      const machines = fleet?.provider.alive.map(({ id }) => id) ?? [];
      if (operator.isDone) throw new Violation(`machines are left: ${machines.join(", ")}`);
      const left = [...witness.ledger.items].filter((item) => !isFinal(item));
      const names = left.map(
        ({ idText, running }) => `${short(idText)} ${running ? `at ${running.worker}` : "pending"}`,
      );
      throw new Violation(`the run does not end; not final: ${names.join(", ")}`);
    }
    if (!(await world.step())) throw new Violation("nothing happens any more");
    if (world.happened % REPLAY_EVERY === 0) await coordinators.checkReplay();
  }
}

/** The rows on the disk are what the ledger's numbers say, and what the coordinator believes. */
async function checkEnd(coordinators: Coordinators, witness: Witness, home: LedgerHome): Promise<void> {
  const disk = home.rows(coordinators.leader.machine);
  await coordinators.checkReplay();
  const bytes = await disk.get(LEDGER_KEY);
  const isEmpty = [...witness.ledger.items].length === 0;
  // It was cancelled before anything came in.
  if (bytes === undefined && isEmpty) return;
  if (bytes === undefined) throw new Violation("there is no ledger");
  const damage = await verifyLedger(disk, okOrFailure("disk", decodeRecord(ledgerRecord, LEDGER_KEY, bytes)));
  if (damage !== undefined) throw new Violation(`the ledger is damaged: ${JSON.stringify(damage)}`);
}
