// The role of this coordinator, by its chart. Its one record is in a database of this host's own: nothing of a fenced coordinator is
// ever written to the shared store. The record outlives the process, so the next one on this host says how the last leadership ended.
import type { Candidacy, Ending, RoleContext, RoleEvent } from "../../../machines/coordinator-role.ts";
import { charts } from "../../../machines/index.ts";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { RolloutError } from "../../base/errors.ts";
import type { Epoch, IncarnationId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Logger } from "../../observe/log.ts";
import type { Opening } from "./elector.ts";
import { ROLES } from "./presence.ts";
import type { RoleName } from "./presence.ts";
import type { ActorSystemOptions, ChartStep, Delivery, Perform } from "../../runtime/driver.ts";
import { ActorSystem } from "../../runtime/driver.ts";
import { actorKey, ACTORS_PREFIX } from "../../storage/keys.ts";
import { prefixRange } from "../../storage/store.ts";
import type { Store } from "../../storage/store.ts";

interface RecordOptions {
  /** Held by this process alone. */
  readonly ownStore: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface RoleOptions extends RecordOptions {
  /** Names the record where there is none yet. */
  readonly incarnation: IncarnationId;
  readonly onFatal: (error: unknown) => void;
  /** Told of the steps of the role. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
}

/** The chart's effects: each is done when the step that wants it is on the disk. */
export interface RoleActs {
  startLeading(): void;
  resignLease(): Promise<void>;
  abortFenced(lost: { readonly reason: string; readonly seenEpoch: number | null }): void;
}

/** A leadership of this process, and what its chart's effects do. */
interface Term {
  readonly acts: RoleActs;
  readonly leading: PromiseWithResolvers<undefined>;
  readonly resigned: PromiseWithResolvers<undefined>;
}

type Lost = Omit<Extract<RoleEvent, { type: "lease.lost" }>, "type">;
type RolledBack = Omit<Extract<RoleEvent, { type: "store.rolledBack" }>, "type">;

export class Role {
  readonly #actors: ActorSystem;
  readonly #address: string;
  readonly #halted = Promise.withResolvers<undefined>();
  #term: Term | undefined;

  private constructor(actors: ActorSystem, address: string) {
    this.#actors = actors;
    this.#address = address;
  }

  /** As others are told. */
  get name(): RoleName {
    const name = ROLES.find((role) => this.#states.includes(role));
    assert(name !== undefined, `no role ${this.#states.join(".")} in the chart of a coordinator`);
    return name;
  }

  /** Whether it takes over in its turn; one that has made room stands behind all others. */
  get isWilling(): boolean {
    return !this.#states.includes("Yielding");
  }

  /** From the outermost to the innermost. */
  get #states(): readonly string[] {
    return (this.#actors.stateOf(this.#address) ?? "").split(".");
  }

  /** How the last leadership on this host that has ended did so, in words for a person; undefined when there is none. */
  get former(): string | undefined {
    const { ending } = this.#actors.contextOf(this.#address) as RoleContext;
    return ending === null ? undefined : wordsOf(ending);
  }

  /**
   * The epoch of the last leadership that a record tells of; null when there was none. In several records the highest epoch is the
   * last leadership's. A record that cannot be read is dropped, as by `take`. Throws store_… rows.
   */
  static async lastEpoch(options: RecordOptions): Promise<number | null> {
    const none = (): void => assert(false, "a record is only read");
    const actors = await restore(options, { perform: none, onFatal: none });
    const address = await addressIn(options.ownStore);
    await actors.close();
    if (address === undefined) return null;
    const { epoch, ending } = actors.contextOf(address) as RoleContext;
    return epoch ?? ending?.epoch ?? null;
  }

  /** A candidate, whatever the process before was; says in the log how that one's leadership ended. Throws store_… rows. */
  static async take(options: RoleOptions): Promise<Role> {
    const { ownStore, incarnation, log } = options;
    const taken: { role?: Role } = {};
    const perform: Perform = (effect) => taken.role?.perform(effect);
    const { onFatal, onStep } = options;
    const actors = await restore(options, { perform, onFatal, onStep });
    const address = (await addressIn(ownStore)) ?? `coordinator/${incarnation}`;
    const isNew = await actors.spawn(address, "coordinator-role", undefined);
    if (!isNew) await actors.send(address, { type: "coordinator.started" } satisfies RoleEvent);
    const role = (taken.role = new Role(actors, address));
    if (role.former !== undefined) log.info(`the coordinator before this one ${role.former}`);
    return role;
  }

  /** Whether it claims the lease, which the chart says. */
  async claim(opening: Opening, candidacy: Candidacy): Promise<boolean> {
    const { kind } = await this.#send({ type: `lease.${opening}`, ...candidacy });
    return kind === "moved";
  }

  /** The claim has come to nothing. */
  async beaten(): Promise<void> {
    await this.#send({ type: "claim.beaten" });
  }

  /** Another process leads. */
  async follow(): Promise<void> {
    if (!this.isWilling) await this.#send({ type: "lease.held" });
  }

  /** This process has won the lease that it claimed: it leads when this resolves. */
  async lead(epoch: Epoch, acts: RoleActs): Promise<void> {
    const [leading, resigned] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    this.#term = { acts, leading, resigned };
    const { kind } = await this.#send({ type: "lease.won", epoch });
    assert(kind !== "ignored", "who leads has claimed");
    await leading.promise;
  }

  /** Resolves when the record says so; the abort follows. */
  async lose(lost: Lost): Promise<void> {
    await this.#send({ type: "lease.lost", ...lost });
  }

  /** The store has gone back in time: resolves when the record says so. The process is to end, which is its caller's to do. */
  async halt(rolledBack: RolledBack): Promise<void> {
    const { kind } = await this.#send({ type: "store.rolledBack", ...rolledBack });
    if (kind === "moved") await this.#halted.promise;
  }

  /** Lets go of the lease, to end; does nothing where it was lost. Throws what the stores throw. */
  resign(): Promise<void> {
    return this.#letGo({ type: "lease.resigned" });
  }

  /** The same, to follow another one. */
  makeRoom(): Promise<void> {
    return this.#letGo({ type: "lease.yielded" });
  }

  close(): Promise<void> {
    return this.#actors.close();
  }

  async #letGo(event: RoleEvent): Promise<void> {
    const { kind } = await this.#send(event);
    if (kind === "moved") await this.#term?.resigned.promise;
  }

  #send(event: RoleEvent): Promise<Delivery> {
    return this.#actors.send(this.#address, event);
  }

  /** Carries out one effect of the chart. */
  readonly perform: Perform = ({ type, params }) => {
    if (type === "haltRolledBack") return this.#halted.resolve(undefined);
    const term = this.#term;
    assert(term !== undefined, "a role has effects when it leads, and not before");
    switch (type) {
      case "startLeading":
        term.acts.startLeading();
        return term.leading.resolve(undefined);
      case "resignLease":
        // Its failure is of the one who asked: it is not tried again.
        return term.resigned.resolve(term.acts.resignLease().then(() => undefined));
      case "abortFenced":
        return term.acts.abortFenced(params as Parameters<RoleActs["abortFenced"]>[0]);
      default:
        assert(false, `nothing carries out ${type} of the coordinator's role`);
    }
  };
}

/** A record that cannot be read is dropped: what became of an earlier process is no reason not to lead. */
async function restore(
  { ownStore: store, clock, random, log }: RecordOptions,
  acts: Pick<ActorSystemOptions, "perform" | "onFatal" | "onStep">,
): Promise<ActorSystem> {
  const options: ActorSystemOptions = {
    ...{ store, clock, random, log, ...acts },
    charts: { "coordinator-role": charts["coordinator-role"] },
    durability: "flush",
  };
  try {
    return await ActorSystem.open(options);
  } catch (error) {
    if (!(error instanceof RolloutError) || !UNREADABLE.has(error.code)) throw error;
    log.warn("the role of the coordinator before this one cannot be read", { err: error });
    const address = await addressIn(store);
    const deletes = address === undefined ? [] : [actorKey(address)];
    const outcome = await store.commit({ puts: [], deletes, expect: [], durability: "flush" });
    if (outcome.kind === "unknown") throw outcome.cause;
    return ActorSystem.open(options);
  }
}

/** The address of the one record; undefined when there is none yet. */
async function addressIn(ownStore: Store): Promise<string | undefined> {
  const [row] = await ownStore.scan({ ...prefixRange(ACTORS_PREFIX), limit: 1 });
  return row?.key.slice(ACTORS_PREFIX.length);
}

const UNREADABLE: ReadonlySet<string> = new Set(["store_corrupt", "store_newer"]);

function wordsOf(ending: Ending): string {
  switch (ending.kind) {
    case "resigned":
      return `resigned at epoch ${ending.epoch}`;
    case "killed":
      return `was killed while it led at epoch ${ending.epoch}`;
    case "halted":
      return `found at epoch ${ending.epoch} that its store had gone back in time`;
    case "fenced":
      return `was fenced at epoch ${ending.epoch}${wordsOfLater(ending)}`;
  }
}

function wordsOfLater({ seenEpoch, by }: Ending & { kind: "fenced" }): string {
  if (by === null) return seenEpoch === null ? "" : ` by a leadership at epoch ${seenEpoch}`;
  return ` by coordinator ${by}${seenEpoch === null ? "" : `, which leads at epoch ${seenEpoch}`}`;
}
