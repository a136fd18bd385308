// The same command with more workers, while its run goes on: a second process that only has workers. They are its own: they leave when
// it is told to, when the run is over or paused, and when the process that has the run is gone. The run, its coordinator, its input and
// its results stay with the first. Keeps true: no worker outlives the command that it was added to.
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { RolloutError } from "../../base/errors.ts";
import { newUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { CONFIG_FILE_NAME, loadConfig } from "../../config/load.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { TOPICS } from "../../observe/events.ts";
import { silentLogger } from "../../observe/log.ts";
import { findLiveHolder } from "../../storage/level/holder-file.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { RolloutClient } from "../rollout-client.ts";
import { Connection } from "./connection.ts";
import { isOfTask, liveWorkers, readCrew } from "./crew.ts";
import type { Crew } from "./crew.ts";
import { readAccount } from "./finished-record.ts";
import type { CheckedInput } from "./local-input.ts";
import { ProgressWatch } from "./progress-watch.ts";
import type { LocalRunEnd, LocalRunPorts, LocalRunRequest, LocalRunSummary } from "./request.ts";
import { LOCK } from "./run-directory.ts";
import { Supervisor } from "./supervisor.ts";

const LOOK_MS = 300;
/** The first command has no workers before it has items; it has its coordinator to start and its input to check. */
const CREW_PATIENCE_MS = 30_000;

export interface HeldRun {
  readonly path: string;
  /** The error that refuses the second command, if it has nothing to add. */
  readonly held: RolloutError;
  readonly input: CheckedInput;
}

/** Throws `held` when it is not the same command, or does not ask for more workers than there are. */
export async function addWorkers(
  request: LocalRunRequest,
  ports: LocalRunPorts,
  { path, held, input }: HeldRun,
): Promise<LocalRunSummary> {
  const { clock } = ports;
  const startedAtMs = clock.monotonicMs();
  const stop = new AbortController();
  void ports.interrupted.then(() => stop.abort());
  if (!(await isOfTask(path, request.task.digest))) throw held;
  const crew = await crewOf(path, clock, stop.signal);
  if (crew?.input !== input.digest) throw held;
  const there = Math.max(crew.workers, await liveWorkers(path));
  const more = request.workers - there;
  if (more <= 0) throw held;
  ports.display.say(
    `this run goes on in process ${crew.pid}, with ${there} worker${there === 1 ? "" : "s"}: ${more} more are added, and leave with it or at Ctrl-C`,
  );
  const added = new AddedWorkers(request, ports, { path, crew, expected: input.items });
  const { end, counts } = await added.perform({ from: there, count: more }, stop.signal);
  return {
    ...{ end, counts, directory: path, items: input.items, failedItem: undefined, submitted: undefined },
    ...{ reassigned: 0, elapsedMs: clock.monotonicMs() - startedAtMs },
  };
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

async function holderOf(path: string): Promise<number | undefined> {
  return (await findLiveHolder(join(path, LOCK), await thisProcess()))?.pid;
}

interface Added {
  readonly path: string;
  readonly crew: Crew;
  readonly expected: number;
}

class AddedWorkers {
  readonly #ports: LocalRunPorts;
  readonly #added: Added;
  readonly #connection: Connection;
  readonly #client: RolloutClient;
  readonly #supervisor: Supervisor;
  readonly #watch: ProgressWatch;
  #address = "";
  #end: LocalRunEnd | undefined;

  constructor(request: LocalRunRequest, ports: LocalRunPorts, added: Added) {
    [this.#ports, this.#added] = [ports, added];
    const { clock, random, display, program } = ports;
    const { path, expected } = added;
    this.#connection = new Connection({ clock, random, log: silentLogger });
    const way = {
      ...{ transport: this.#connection.transport, itemBytesMax: request.input.lineBytesMax },
      close: () => this.#connection.close(),
      taskOf: () => Promise.resolve(request.task),
    };
    this.#client = RolloutClient.over(way, { clock, random });
    this.#supervisor = new Supervisor({
      directory: {
        configFile: join(path, CONFIG_FILE_NAME),
        logFile: (who) => Promise.resolve(join(path, `${who}.log`)),
      },
      ...{ program, clock, coordinatorWords: [], workerWords: request.workerWords },
      say: (sentence) => display.say(sentence),
      onAddress: () => Promise.resolve(),
    });
    const slots = request.workers * request.slotsPerWorker;
    this.#watch = new ProgressWatch({ client: this.#client, display, clock, expected, slots });
  }

  async perform(
    { from, count }: { readonly from: number; readonly count: number },
    signal: AbortSignal,
  ): Promise<Pick<LocalRunSummary, "end" | "counts">> {
    const { clock, random, onStarted } = this.#ports;
    onStarted({ killAll: () => this.#supervisor.kill(), end: () => this.#end });
    try {
      await this.#findCoordinator();
      this.#watch.start();
      this.#watch.submitted(undefined);
      const ids = Array.from({ length: count }, () => newUlid<WorkerId>(clock, random));
      await this.#supervisor.startWorkers(ids, from);
      const end = await this.#untilOver(signal);
      this.#end = end;
      this.#watch.say("the added workers are leaving");
      await this.#supervisor.stopWorkers();
      const counts = await this.#watch.last(undefined, undefined);
      return { end: await this.#explained(end, counts), counts };
    } finally {
      await this.#supervisor.stopWorkers();
      await this.#watch.stop();
      this.#client.close();
    }
  }

  async #untilOver(signal: AbortSignal): Promise<LocalRunEnd> {
    const { clock } = this.#ports;
    let givenUp: LocalRunEnd | undefined;
    void this.#supervisor.givenUp.then((reason) => (givenUp = { kind: "given-up", reason }));
    for (;;) {
      if (signal.aborted) return { kind: "helped", how: "interrupted" };
      if (givenUp !== undefined) return givenUp;
      if ((await holderOf(this.#added.path)) !== this.#added.crew.pid) return { kind: "helped", how: "left" };
      await this.#findCoordinator();
      const state = await this.#client.status({ signal }).then(
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
    const account = await readAccount(this.#added.path);
    const isOver = counts !== undefined && counts.pending + counts.running === 0;
    return account?.input === this.#added.crew.input || isOver ? { kind: "helped", how: "complete" } : end;
  }

  /** Its address changes when somebody else has taken its port while it was away. */
  async #findCoordinator(): Promise<void> {
    const config = await this.#config();
    const address = config.worker.coordinatorAddr;
    if (address === this.#address) return;
    this.#address = address;
    await this.#connection.open(config);
    this.#supervisor.moveTo(address);
  }

  #config(): Promise<ClientConfig> {
    const { path } = this.#added;
    return loadConfig("operator", {
      file: join(path, CONFIG_FILE_NAME),
      ...{ environment: {}, flags: {}, workingDirectory: path, topics: TOPICS },
    });
  }
}
