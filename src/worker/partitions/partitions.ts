// The partitions that are the worker's own by the ring, and their states in memory. It reads the last checkpoint of each, asks the
// coordinator for the states that were committed since, and says when it has them: from then on items of its keys come without their states.
// When it is asked to, it writes a checkpoint of each.
//
// Keeps true: a state is given to an item by the exact commit that its assignment names; nothing of an earlier leader's history is kept,
// because a database that was restored may give the same commits to other states; states are bounded in memory (C8), and a partition that
// they have no room for keeps none.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { checkpointPlace, partitionOf } from "../../base/partition.ts";
import type { Clock } from "../../base/clock.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import type {
  GetAssignmentResponse,
  PartitionCheckpointAckSchema,
  PartitionCheckpointRequest,
  PartitionLoadedSchema,
  PartitionStates as StatesFrame,
} from "../../gen/rollout/v1/work_pb.ts";
import type { Logger } from "../../observe/log.ts";
import type { Assigned } from "../work/backlog.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";
import { PartitionStates } from "./partition-states.ts";
import type { KeyState } from "./partition-states.ts";

export interface PartitionsOptions {
  readonly runId: RunId;
  readonly workerId: WorkerId;
  readonly store: CheckpointStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of states in memory, over all partitions; 64 MiB unless said. */
  readonly maxBytes?: number;
  /** Attempts of items of keys that execute, or whose results are not acknowledged. */
  readonly atWork: () => readonly string[];
  /** Whether the attempt is one of these still. */
  readonly isAtWork: (attempt: string) => boolean;
  /** There is something to say. */
  readonly onNews: () => void;
  /** The program is wrong. */
  readonly onFatal: (error: unknown) => void;
}

/** Asks the leader of the session for the worker's partitions; undefined when it gives no answer now. */
export type AskAssignment = (leader: string) => Promise<GetAssignmentResponse | undefined>;

/** A frame of the session. */
export type PartitionFrame =
  | { readonly case: "partitionLoaded"; readonly value: MessageInitShape<typeof PartitionLoadedSchema> }
  | {
      readonly case: "partitionCheckpoint";
      readonly value: MessageInitShape<typeof PartitionCheckpointAckSchema>;
    };

interface Owned {
  readonly partition: number;
  /** The last one that was named by the coordinator. */
  readonly checkpoint: { readonly offset: number; readonly place: string } | undefined;
  /** Undefined before its checkpoint was read, and when there is no room for it. */
  states: PartitionStates | undefined;
  hasNoRoom: boolean;
  /** All states up to this commit are here. */
  upTo: number;
  /** States that the checkpoint had. */
  loaded: number;
  /** In the session of now it has said that it has all of them. */
  isComplete: boolean;
  /** There are states that no checkpoint of it has. */
  isUnwritten: boolean;
  /** By turns, so that the last one that is named stays whole. */
  turn: 0 | 1;
}

interface Assignment {
  readonly epoch: bigint;
  readonly totalPartitions: number;
  readonly owned: ReadonlyMap<number, Owned>;
}

/** One following of the assignment: it ends with its session, or when there is another assignment. */
class Following {
  readonly over = Promise.withResolvers<"over">();
  isOver = false;
  isAsking = true;
  /** The store gives no answer: the rest is asked of the coordinator. */
  isStoreSilent = false;

  end(): void {
    this.isOver = true;
    this.over.resolve("over");
  }
}

/** The partition that is being sent. */
interface Replay {
  readonly partition: number;
  replayed: number;
  readonly answered: (isLast: boolean) => void;
}

const BYTES_MAX = 64 * 1024 * 1024;

export class Partitions {
  readonly #options: PartitionsOptions;
  readonly #maxBytes: number;
  readonly #checkpoints: Checkpoints;
  #ask: AskAssignment = () => Promise.resolve(undefined);
  /** The leader whose history the states are of, and whether there is a session with it. */
  #leader: string | undefined;
  #isInSession = false;
  /** As the last answer to a beat said. */
  #seenEpoch: bigint | undefined;
  #assignment: Assignment | undefined;
  #following: Following | undefined;
  #replay: Replay | undefined;
  /** The last commit of own results that the coordinator has told of. */
  #heard = 0;
  #unsaid: PartitionFrame[] = [];
  /** A checkpoint is asked for and waits for these to be committed. */
  #awaited: { readonly number: bigint; readonly attempts: Set<string> } | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: PartitionsOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? BYTES_MAX;
    this.#checkpoints = new Checkpoints(options);
  }

  attach(ask: AskAssignment): void {
    this.#ask = ask;
  }

  /** The answer to a beat has named this epoch of the assignment; undefined while the run has no keys. */
  sawEpoch(epoch: bigint | undefined): void {
    this.#seenEpoch = epoch;
    if (this.#following?.isAsking !== true && this.#isOutdated) this.#follow();
  }

  /** A session has its verdict. All that was said of partitions in the one before is said anew. */
  sessionBegan(leader: string): void {
    if (leader !== this.#leader) this.#assignment = undefined;
    this.#leader = leader;
    this.#isInSession = true;
    this.#unsaid = [];
    for (const owned of this.#assignment?.owned.values() ?? []) {
      if (owned.isComplete) owned.upTo = Math.max(owned.upTo, this.#heard);
      owned.isComplete = false;
      // The coordinator may not have heard what was written.
      owned.isUnwritten = owned.states !== undefined && owned.states.size > 0;
    }
    this.#heard = 0;
    this.#follow();
  }

  sessionEnded(): void {
    this.#isInSession = false;
    this.#awaited = undefined;
    this.#following?.end();
    this.#following = undefined;
  }

  /** With the state of its key, if it is here; undefined when it should be and is not. */
  complete(assigned: Assigned): Assigned | undefined {
    const { keyed } = assigned;
    if (keyed === undefined || keyed.commit === 0n) return assigned;
    const owned = this.#ownerOf(keyed.key);
    const commit = Number(keyed.commit);
    if (keyed.state !== undefined) {
      this.#keep(owned, { key: keyed.key, commit, state: keyed.state });
      return assigned;
    }
    const state = owned?.states?.get(keyed.key, commit);
    return state && { ...assigned, keyed: { ...keyed, state } };
  }

  /** States of the worker's own results are committed. */
  committed(states: Iterable<Omit<KeyState, "commit">>, commit: number): void {
    this.#heard = Math.max(this.#heard, commit);
    for (const left of states) this.#keep(this.#ownerOf(left.key), { ...left, commit });
  }

  /** States that it was sent. */
  takeStates({ partition, states, upTo, last }: StatesFrame): void {
    const owned = this.#assignment?.owned.get(partition);
    for (const { key, commit, state } of states) this.#keep(owned, { key, commit: Number(commit), state });
    const replay = this.#replay;
    if (replay?.partition !== partition) return;
    replay.replayed += states.length;
    if (last && owned !== undefined) owned.upTo = Math.max(owned.upTo, Number(upTo));
    replay.answered(last);
  }

  /**
   * A checkpoint of each partition is asked for. Attempts that execute now are waited for, so that they are in it, but no longer than until
   * the next request; one that comes while the last is being written is not heeded.
   */
  takeRequest({ number }: PartitionCheckpointRequest): void {
    if (this.#writing !== undefined) return;
    if (this.#awaited === undefined) this.#awaited = { number, attempts: new Set(this.#options.atWork()) };
    else this.#awaited = { number, attempts: new Set() };
    this.settled();
  }

  /** Results were acknowledged, or attempts have ended otherwise. Cheap. */
  settled(): void {
    if (this.#awaited === undefined || this.#writing !== undefined) return;
    const { number, attempts } = this.#awaited;
    for (const attempt of attempts) if (!this.#options.isAtWork(attempt)) attempts.delete(attempt);
    if (attempts.size > 0) return;
    this.#awaited = undefined;
    this.#writing = this.#writeAll(number)
      .catch(this.#options.onFatal)
      .finally(() => (this.#writing = undefined));
  }

  /** The next frame; undefined when there is nothing to say. */
  next(): PartitionFrame | undefined {
    return this.#unsaid.shift();
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    this.sessionEnded();
    await this.#writing;
  }

  /** Partitions and states in memory. */
  get counts(): { readonly partitions: number; readonly states: number } {
    let [partitions, states] = [0, 0];
    for (const owned of this.#assignment?.owned.values() ?? []) {
      if (owned.isComplete) partitions++;
      states += owned.states?.size ?? 0;
    }
    return { partitions, states };
  }

  get #isOutdated(): boolean {
    const seen = this.#seenEpoch;
    return seen !== undefined && (this.#assignment === undefined || seen > this.#assignment.epoch);
  }

  #ownerOf(key: string): Owned | undefined {
    const assignment = this.#assignment;
    if (assignment === undefined || assignment.totalPartitions === 0) return undefined;
    return assignment.owned.get(partitionOf(key, assignment.totalPartitions));
  }

  #keep(owned: Owned | undefined, state: KeyState): void {
    if (owned?.states?.put(state) !== true) return;
    owned.isUnwritten = true;
    if (owned.states.weight > this.#maxBytes / 16) this.#makeRoom();
  }

  /** Too many states: the largest partition goes, and its items come with their states again. */
  #makeRoom(): void {
    const all = [...(this.#assignment?.owned.values() ?? [])];
    let weight = all.reduce((sum, { states }) => sum + (states?.weight ?? 0), 0);
    while (weight > this.#maxBytes) {
      const largest = all.reduce((one, other) =>
        (one.states?.weight ?? 0) >= (other.states?.weight ?? 0) ? one : other,
      );
      weight -= largest.states?.weight ?? 0;
      largest.states = undefined;
      largest.hasNoRoom = true;
      largest.isComplete = false;
      this.#say({ partition: largest.partition, dropped: true });
      if (this.#replay?.partition === largest.partition) this.#replay.answered(true);
    }
  }

  #follow(): void {
    this.#following?.end();
    this.#following = undefined;
    if (!this.#isInSession || this.#seenEpoch === undefined) return;
    const following = (this.#following = new Following());
    this.#load(following)
      .then(() => {
        if (this.#following === following) this.#following = undefined;
      })
      .catch(this.#options.onFatal);
  }

  async #load(following: Following): Promise<void> {
    if (this.#isOutdated) {
      const found = await this.#ask(this.#leader ?? "");
      if (following.isOver || found === undefined) return;
      this.#adopt(found);
    }
    following.isAsking = false;
    for (const owned of this.#assignment?.owned.values() ?? []) {
      if (following.isOver) return;
      if (!owned.isComplete && !owned.hasNoRoom) await this.#loadOne(owned, following);
    }
  }

  /** Partitions that stay keep their states. */
  #adopt({ assignmentEpoch: epoch, totalPartitions, partitions }: GetAssignmentResponse): void {
    const before = this.#assignment?.owned;
    const owned = partitions.map(({ partition, checkpoint }): readonly [number, Owned] => [
      partition,
      before?.get(partition) ?? {
        partition,
        checkpoint: checkpoint && { offset: Number(checkpoint.offset), place: checkpoint.place },
        states: undefined,
        hasNoRoom: false,
        upTo: 0,
        loaded: 0,
        isComplete: false,
        isUnwritten: false,
        turn: checkpoint?.place === checkpointPlace(partition, this.#options.workerId, 0) ? 1 : 0,
      },
    ]);
    this.#assignment = { epoch, totalPartitions, owned: new Map(owned) };
  }

  async #loadOne(owned: Owned, following: Following): Promise<void> {
    const { clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const { partition } = owned;
    if (owned.states === undefined) {
      const { checkpoint } = owned;
      const read =
        checkpoint === undefined || following.isStoreSilent
          ? "none"
          : await this.#checkpoints.read(partition, checkpoint);
      if (following.isOver) return;
      following.isStoreSilent ||= read === "silent";
      const found = typeof read === "string" ? undefined : read;
      owned.states = new PartitionStates();
      for (const state of found?.states ?? []) owned.states.put(state);
      owned.upTo = found?.offset ?? 0;
      owned.loaded = owned.states.size;
      this.#makeRoom();
    }
    const epoch = this.#assignment?.epoch ?? 0n;
    let replayed = 0;
    for (let isLast = false; !isLast && !owned.hasNoRoom;) {
      const answer = Promise.withResolvers<boolean>();
      const replay: Replay = { partition, replayed, answered: answer.resolve };
      this.#replay = replay;
      this.#say({ partition, assignmentEpoch: epoch, offset: BigInt(owned.upTo) });
      const answered = await Promise.race([answer.promise, following.over.promise]);
      if (this.#replay === replay) this.#replay = undefined;
      if (answered === "over") return;
      replayed = replay.replayed;
      isLast = answered;
    }
    if (owned.hasNoRoom) return;
    owned.isComplete = true;
    this.#say({
      ...{ partition, assignmentEpoch: epoch, offset: BigInt(owned.upTo), complete: true },
      loaded: BigInt(owned.loaded),
      replayed: BigInt(replayed),
      durationMs: BigInt(Math.round(clock.monotonicMs() - startedMs)),
    });
  }

  #say(value: MessageInitShape<typeof PartitionLoadedSchema>): void {
    this.#unsaid.push({ case: "partitionLoaded", value });
    this.#options.onNews();
  }

  async #writeAll(number: bigint): Promise<void> {
    const written = [];
    for (const owned of this.#assignment?.owned.values() ?? []) {
      if (!this.#isInSession) break;
      if (!owned.isComplete || !owned.isUnwritten) continue;
      const checkpoint = await this.#writeOne(owned);
      if (checkpoint === undefined) break;
      written.push({ partition: owned.partition, checkpoint });
    }
    if (written.length === 0 || !this.#isInSession) return;
    this.#unsaid.push({ case: "partitionCheckpoint", value: { number, written } });
    this.#options.onNews();
  }

  /** Undefined when it could not be written: then the others are not tried either. */
  async #writeOne(owned: Owned): Promise<{ readonly offset: bigint; readonly place: string } | undefined> {
    const { partition, turn } = owned;
    const offset = Math.max(owned.upTo, this.#heard);
    const place = checkpointPlace(partition, this.#options.workerId, turn);
    const states = [...(owned.states ?? [])].filter(({ commit }) => commit <= offset);
    owned.isUnwritten = false;
    const isWritten = await this.#checkpoints.write(place, { partition, offset, states });
    if (isWritten) owned.turn = turn === 0 ? 1 : 0;
    else owned.isUnwritten = true;
    return isWritten ? { offset: BigInt(offset), place } : undefined;
  }
}
