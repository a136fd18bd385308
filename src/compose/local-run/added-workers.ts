// The same command with more workers, while its run goes on: a second process that only has workers. They are its own: they leave when
// it is told to, when the run is over or paused, and when the process that has the run is gone. The run, its coordinator, its input and
// its results stay with the first. Keeps true: no worker outlives the command that it was added to.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { showAddresses } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import { jsonFields } from "../../base/exact-json.ts";
import { newUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { sameFields } from "../../client/item-fields.ts";
import { CONFIG_FILE_NAME, loadConfig } from "../../config/load.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import type { Task } from "../../config/task.ts";
import { TOPICS } from "../../observe/events.ts";
import { silentLogger } from "../../observe/log.ts";
import { findLiveHolder } from "../../storage/level/holder-file.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import type { Store } from "../../storage/store.ts";
import { RolloutClient } from "../rollout-client.ts";
import { Cluster } from "./cluster.ts";
import type { LocalInput } from "./local-input.ts";
import { ProgressWatch } from "./progress-watch.ts";
import { isTaken } from "./released-tasks.ts";
import type { LocalRunEnd, LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { HOLDER_NAME, isOf } from "./run-directory.ts";
import { knownParts, LOCK, STATE, workersIn } from "./run-record.ts";

export const CREW_FILE = "crew.json";
const CREW_VERSION = 2;
const LOOK_MS = 300;
/** A database of nothing, for its lock. */
const TURN = "adding";
const TURN_POLL_MS = 100;
/** The first command has no workers before it has items; it has its coordinator to start and its input to check. */
const CREW_PATIENCE_MS = 30_000;

/** The workers that a `rollout run` which goes on has started, in a file of the run's directory. */
interface Crew {
  /** The process that has started them. */
  readonly pid: number;
  readonly workers: number;
  /** The input, as `identity` has it. */
  readonly input: string;
}

export async function crewText(crew: Omit<Crew, "pid">): Promise<string> {
  const { pid } = await thisProcess();
  return `${JSON.stringify({ version: CREW_VERSION, ...crew, pid })}\n`;
}

export interface HeldRun {
  readonly path: string;
  /** The error that refuses the second command, if it has nothing to add. */
  readonly held: RolloutError;
  readonly input: LocalInput;
}

/**
 * Throws `held` when it is not the same command, or does not ask for more workers than there are; release_of_task for the manifest of a
 * candidate. One that the run has come to by a release is the same.
 */
export async function addWorkers(
  request: LocalRunRequest,
  ports: LocalRunPorts,
  { path, held, input }: HeldRun,
): Promise<LocalRunSummary> {
  const { clock } = ports;
  const startedAtMs = clock.monotonicMs();
  const stop = new AbortController();
  void ports.interrupted.then(() => stop.abort());
  const [known, { fields }] = [await knownParts(path), request.input];
  if (!sameFields(known.fields, fields)) throw held;
  const crew = await crewOf(path, clock, stop.signal);
  if (crew === undefined || crew.input !== input.identity) throw held;
  const isSame = isOf(known, { ...request.task, fields }) || (await isReleased(path, request.task));
  const turn = isSame ? await turnToAdd(path, clock, stop.signal) : undefined;
  if (turn === undefined) throw held;
  try {
    const there = Math.max(crew.workers, (await liveWorkers(path)).length);
    const more = request.workers - there;
    if (more <= 0) throw held;
    ports.display.say(
      `this run goes on in process ${crew.pid}, with ${there} worker${there === 1 ? "" : "s"}: ${more} more are added, and leave with it or at Ctrl-C`,
    );
    const added = new AddedWorkers(request, ports, { path, crew, turn });
    const { end, counts } = await added.perform({ from: there, count: more }, stop.signal);
    return {
      ...{ end, counts, directory: path, items: undefined, failedItem: undefined, submitted: undefined },
      ...{ reassigned: 0, elapsedMs: clock.monotonicMs() - startedAtMs },
    };
  } finally {
    await turn.close();
  }
}

/** Whether the run that goes on has come to this task by a release. */
async function isReleased(path: string, task: Task): Promise<boolean> {
  const client = await RolloutClient.open(await configOf(path), silentLogger);
  try {
    return await isTaken((request) => client.calls.submit(request), task);
  } finally {
    client.close();
  }
}

function configOf(path: string): Promise<ClientConfig> {
  return loadConfig("operator", {
    file: join(path, CONFIG_FILE_NAME),
    ...{ environment: {}, flags: {}, workingDirectory: path, topics: TOPICS },
  });
}

/**
 * Commands that add workers decide one at a time how many are missing: until its own can be counted each has the turn. Undefined when the
 * signal comes first.
 */
async function turnToAdd(path: string, clock: Clock, signal: AbortSignal): Promise<Store | undefined> {
  while (!signal.aborted) {
    try {
      return await openLevelStore({ path: join(path, TURN), holderName: HOLDER_NAME, clock });
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "store_held") throw error;
    }
    await sleep(clock, TURN_POLL_MS, signal);
  }
  return undefined;
}

/** The crew that the process which has the run has started; undefined when there is none, or it does not come to that. */
async function crewOf(path: string, clock: Clock, signal: AbortSignal): Promise<Crew | undefined> {
  const endMs = clock.monotonicMs() + CREW_PATIENCE_MS;
  while (!signal.aborted && clock.monotonicMs() < endMs) {
    const pid = await holderOf(path);
    if (pid === undefined) return undefined;
    const crew = await readCrew(path);
    if (crew?.pid === pid) return crew;
    await sleep(clock, LOOK_MS, signal);
  }
  return undefined;
}

/** Undefined when no such file was written, or another one. */
async function readCrew(directory: string): Promise<Crew | undefined> {
  const text = await readFile(join(directory, CREW_FILE), "utf8").catch(() => "");
  const { version, pid, workers, input } = jsonFields(text);
  if (version !== CREW_VERSION || typeof pid !== "number" || typeof workers !== "number") return undefined;
  return typeof input === "string" ? { pid, workers, input } : undefined;
}

/** Workers of this directory that run now, whoever has started them. */
async function liveWorkers(directory: string): Promise<WorkerId[]> {
  const self = await thisProcess();
  const ids = await workersIn(directory);
  const paths = ids.map((id) => join(directory, STATE, "workers", id));
  const holders = await Promise.all(paths.map((path) => findLiveHolder(path, self)));
  return ids.filter((_, at) => holders[at] !== undefined);
}

async function holderOf(path: string): Promise<number | undefined> {
  return (await findLiveHolder(join(path, LOCK), await thisProcess()))?.pid;
}

interface Added {
  readonly path: string;
  readonly crew: Crew;
  /** Closed when the added workers can be counted. */
  readonly turn: Store;
}

class AddedWorkers {
  readonly #ports: LocalRunPorts;
  readonly #added: Added;
  readonly #cluster: Cluster;
  readonly #watch: ProgressWatch;
  #address = "";
  #end: LocalRunEnd | undefined;

  constructor(request: LocalRunRequest, ports: LocalRunPorts, added: Added) {
    [this.#ports, this.#added] = [ports, added];
    const { clock, random, display } = ports;
    const { path } = added;
    const directory = {
      configFile: join(path, CONFIG_FILE_NAME),
      logFile: (who: string) => Promise.resolve(join(path, `${who}.log`)),
    };
    const say = (sentence: string): void => display.say(sentence);
    this.#cluster = new Cluster(directory, request, { clock, random, say });
    const slots = request.workers * request.slotsPerWorker;
    const { client } = this.#cluster;
    // Everything that is there was submitted by the other command.
    this.#watch = new ProgressWatch({ client, display, clock, expected: () => 0, slots });
  }

  async perform(
    { from, count }: { readonly from: number; readonly count: number },
    signal: AbortSignal,
  ): Promise<Pick<LocalRunSummary, "end" | "counts">> {
    const { clock, random, onStarted } = this.#ports;
    onStarted({ killAll: () => this.#cluster.kill(), end: () => this.#end });
    try {
      await this.#findCoordinator();
      this.#watch.start();
      this.#watch.submitted(undefined);
      const ids = Array.from({ length: count }, () => newUlid<WorkerId>(clock, random));
      await this.#cluster.startWorkers(ids, from);
      const end = await this.#untilOver(ids, signal);
      this.#end = end;
      this.#watch.say("the added workers are leaving");
      await this.#cluster.stopWorkers();
      const counts = await this.#watch.last(undefined, undefined);
      return { end: await this.#explained(end, counts), counts };
    } finally {
      await this.#cluster.stopWorkers();
      await this.#watch.stop();
      await this.#cluster.stop();
    }
  }

  async #untilOver(ids: readonly WorkerId[], signal: AbortSignal): Promise<LocalRunEnd> {
    const { clock } = this.#ports;
    const { path, crew, turn } = this.#added;
    let areCounted = false;
    let givenUp: LocalRunEnd | undefined;
    void this.#cluster.givenUp.then((reason) => (givenUp = { kind: "given-up", reason }));
    for (;;) {
      if (signal.aborted) return { kind: "helped", how: "interrupted" };
      if (givenUp !== undefined) return givenUp;
      if ((await holderOf(path)) !== crew.pid) return { kind: "helped", how: "left" };
      if (!areCounted) {
        const live = await liveWorkers(path);
        areCounted = ids.every((id) => live.includes(id));
        if (areCounted) await turn.close();
      }
      await this.#findCoordinator();
      const state = await this.#cluster.client.status({ signal }).then(
        (status) => status.state,
        () => undefined,
      );
      if (state === "complete" || state === "cancelled" || state === "paused")
        return { kind: "helped", how: state };
      await sleep(clock, LOOK_MS, signal);
    }
  }

  /** The process that has the run ends right after the run, and is quicker than a look now and then. */
  async #explained(end: LocalRunEnd, counts: LocalRunSummary["counts"]): Promise<LocalRunEnd> {
    if (end.kind !== "helped" || end.how !== "left") return end;
    const { finished } = await knownParts(this.#added.path);
    const isOver = counts !== undefined && counts.pending + counts.running === 0;
    return finished !== undefined || isOver ? { kind: "helped", how: "complete" } : end;
  }

  /** Its address changes when somebody else has taken its port while it was away. */
  async #findCoordinator(): Promise<void> {
    const config = await configOf(this.#added.path);
    const address = showAddresses(config.worker.coordinatorAddr);
    if (address === this.#address) return;
    this.#address = address;
    await this.#cluster.join(config);
  }
}
