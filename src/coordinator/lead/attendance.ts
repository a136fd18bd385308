// This coordinator's part among all that share its store. With each heartbeat it reads the others' rows and writes its own; while it
// follows it applies what the leader publishes and rehearses the replay, and while it leads it publishes, and makes room when nobody
// hears it any more.
//
// Keeps true: one heartbeat at a time, and none after `stop`; a leader's row is written only while it may act. A heartbeat does not wait
// for a row that cannot be written: what others are is seen as long as the store can be read.
import type { Candidacy } from "../../../machines/coordinator-role.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { isDoneWithin, sleep } from "../../base/clock.ts";
import type { Epoch, IncarnationId } from "../../base/ids.ts";
import type { EventEmitter } from "../../observe/events.ts";
import type { Logger } from "../../observe/log.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { COORDINATOR_SNAPSHOT_KEY } from "../../storage/keys.ts";
import type { Entry, Expectation, Store } from "../../storage/store.ts";
import { snapshotRecord } from "./coordinator-snapshot.ts";
import type { CoordinatorSnapshot } from "./coordinator-snapshot.ts";
import type { Chance } from "./elector.ts";
import type { LeaseTiming } from "./elector-storage.ts";
import type { LeaseRow } from "./lease.ts";
import { Presence } from "./presence.ts";
import type { PresenceRow } from "./presence.ts";
import type { Role } from "./role.ts";
import { Roster } from "./roster.ts";
import type { Member, Standing } from "./roster.ts";

export interface AttendanceOptions {
  readonly store: Store;
  readonly incarnation: IncarnationId;
  /** Host and port at which this coordinator is reached. */
  readonly address: string;
  readonly role: Role;
  /** The leadership of this process, while it has one. */
  readonly term: () => LeaderTerm | undefined;
  readonly timing: LeaseTiming;
  readonly standing: Omit<Standing, "isWilling">;
  /** A coordinator that is gone is forgotten after this time. */
  readonly removeAfterMs: number;
  /** A worker that is silent for so long has failed; a leader that hears none for so long may be the one that is cut off. */
  readonly failureTimeoutMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventEmitter;
  /** Replays the ledger as it is at one moment; undefined where the store cannot show it so. Throws store_… rows. */
  readonly rehearse: () => Promise<void> | undefined;
  /** Takes over what the leader has changed for everybody; with each heartbeat while it follows. Never rejects. */
  readonly keepUp?: () => Promise<void>;
  /** Whether the leader at this address answers, as far as it is known; undefined where it is not. Asked with each heartbeat. */
  readonly hears?: (address: string) => boolean | undefined;
  /** A leader of this epoch has published a snapshot, so no database loses its claim that loses nothing synced. */
  readonly onPublished?: (epoch: Epoch) => void;
}

/** A leadership of this process. */
export interface LeaderTerm {
  readonly epoch: Epoch;
  readonly epochRow: Expectation;
  /** When it began. */
  readonly electedAtWallMs: number;
  readonly mayAct: () => boolean;
  /** Has a turn write a snapshot. */
  readonly publish: () => void;
  /** The number of the last one. */
  readonly published: () => number;
  /** For how long no worker was heard, in this leadership. */
  readonly unheardForMs: () => number;
  /** Whether the silence of workers is to be no fault of theirs for now. */
  readonly holdJudgement: (isHeld: boolean) => void;
  /** Nobody hears this leader: it is to make room. */
  readonly giveUp: (reason: string) => void;
}

/** The leader that others are told of. */
export interface KnownLeader {
  readonly address: string;
  readonly epoch: Epoch | null;
}

const REHEARSAL_INTERVAL_MS = 60_000;
const LEAVE_MS = 2_000;
/** A leader that has not renewed for so many heartbeats is waited for no longer than its lease is. */
const SILENT_HEARTBEATS = 2;
/** A leader that hears no worker for so many is not sure of its own network. */
const UNHEARD_HEARTBEATS = 2;
/** A coordinator that lives is known to after so many: it writes its row a second time, and the leader looks. */
const COMING_HEARTBEATS = 3;
/** The command that asks gives up a little later. */
const COMING_MAX_MS = 7_500;
/** How often in a heartbeat one that follows is asked who leads: while nothing is known of when that changes, and while it changes. */
const QUESTIONS_PER_HEARTBEAT = { inTime: 4, soon: 10 };

export class Attendance {
  readonly #options: AttendanceOptions;
  readonly #roster: Roster;
  readonly #presence: Presence;
  /** The lease as it was last seen; undefined before that. */
  #lease: LeaseRow | undefined;
  /** When it was seen to have changed. Monotonic. */
  #renewedMs = -Infinity;
  #told: string | undefined;
  #snapshot: CoordinatorSnapshot | undefined;
  /** When that was first seen. Monotonic. */
  #snapshotAtMs = -Infinity;
  #rehearsal: { readonly tookMs: number; readonly atWallMs: number } | undefined;
  #nextRehearsalMs = -Infinity;
  #rehearsing: Promise<void> = Promise.resolve();
  #hearsLeader: boolean | undefined;
  /** How long no worker may be heard yet before this leader gives up; its next heartbeat is then at the latest. */
  #unheardLeftMs = Infinity;
  #timer: Timer | undefined;
  #beating: Promise<void> = Promise.resolve();
  /** The row that is being written. */
  #announcing: Promise<void> | undefined;
  #isOver = false;

  constructor(options: AttendanceOptions) {
    this.#options = options;
    this.#roster = new Roster(options);
    this.#presence = new Presence(options.store, options.incarnation);
  }

  /** Its first heartbeat has gone out when it resolves, unless the store takes none. */
  async start(): Promise<void> {
    const { clock, timing } = this.#options;
    this.#beating = this.#beat();
    await this.#beating;
    await isDoneWithin(clock, timing.ttlMs, Promise.resolve(this.#announcing));
    await this.#remove(this.#roster.ownEarlier());
    this.#arm();
  }

  /** Takes its own row away, unless this coordinator was fenced. Waits for no store that does not answer. Never rejects; idempotent. */
  async stop(): Promise<void> {
    this.#isOver = true;
    this.#timer?.cancel();
    const leave = async (): Promise<void> => {
      await this.#beating;
      await this.#announcing;
      // C5: nothing more is written by a fenced one.
      if (this.#options.role.name !== "Fenced") await this.#presence.withdraw();
      await this.#rehearsing;
    };
    await isDoneWithin(this.#options.clock, LEAVE_MS, leave());
  }

  /** It has come to lead, or has made room: the others are told at once. */
  turned(): void {
    // The elector looks again before long: what was seen before it led tells of a leader before this one.
    this.#lease = undefined;
    this.#hearsLeader = undefined;
    this.#unheardLeftMs = Infinity;
    this.#told = undefined;
    this.#beatSoon();
  }

  /** A look at the lease, by the elector. */
  see(lease: LeaseRow | undefined): void {
    if (lease?.renewals !== this.#lease?.renewals || lease?.holder !== this.#lease?.holder)
      this.#renewedMs = this.#options.clock.monotonicMs();
    this.#lease = lease;
    const leader = this.leader;
    const text = `${leader?.address ?? ""} ${lease?.epoch ?? ""} ${lease?.holder ?? ""}`;
    if (lease === undefined || text === this.#told) return;
    // A role that cannot be written down is fatal by itself.
    if (lease.holder !== null && lease.holder !== this.#options.incarnation)
      this.#options.role.follow().catch(() => undefined);
    this.#told = text;
    this.#options.events.emit("coordinator_following", {
      address: this.#options.address,
      leader_address: leader?.address ?? null,
      epoch: lease.holder === null ? null : lease.epoch,
    });
  }

  candidacy({ opening, openForMs }: Chance): Candidacy {
    const { standing: own, role } = this.#options;
    const standing = { ...own, isWilling: role.isWilling };
    const givenUp = opening === "quiet" ? (this.#lease?.holder ?? undefined) : undefined;
    return this.#roster.candidacy(standing, openForMs, givenUp);
  }

  /** Another process that leads, as far as this one knows. */
  get leader(): KnownLeader | undefined {
    const holder = this.#lease?.holder ?? null;
    if (this.#lease === undefined || holder === null || holder === this.#options.incarnation)
      return undefined;
    const { address, epoch } = this.#lease;
    // A lease of an earlier version does not say it.
    const member = this.#roster.others.find(({ incarnation }) => incarnation === holder);
    const known = address === "" ? member?.row.address : address;
    return known === undefined ? undefined : { address: known, epoch };
  }

  /**
   * After how long it is worth to be asked again who leads. A leader that is silent holds its lease until its time is over: before that
   * there is no other, and it is not worth more than to see whether that one is back. A lease that is free is taken at the next look.
   */
  get retryAfterMs(): number {
    const { ttlMs, renewalMs } = this.#options.timing;
    const quietMs = this.#options.clock.monotonicMs() - this.#renewedMs;
    const isSilent = this.leader !== undefined && quietMs >= SILENT_HEARTBEATS * renewalMs;
    const leftMs = isSilent ? Math.min(ttlMs - quietMs, SILENT_HEARTBEATS * renewalMs) : 0;
    const { soon, inTime } = QUESTIONS_PER_HEARTBEAT;
    return Math.max(leftMs, renewalMs / (this.#lease?.holder === null ? soon : inTime));
  }

  /** Whether the store answers, by the last heartbeats. */
  get hasStore(): boolean {
    return this.#roster.isReadable;
  }

  /** For how long it has seen no newer snapshot than its last; undefined before the first. */
  get snapshotAgeMs(): number | undefined {
    const sinceMs = this.#options.clock.monotonicMs() - this.#snapshotAtMs;
    return this.#snapshot === undefined ? undefined : sinceMs;
  }

  /** This one, as the others are to see it. */
  get own(): Member {
    const { incarnation } = this.#options;
    return { incarnation, row: { ...this.#ownRow(), heartbeat: 0 }, isPresent: true };
  }

  /** All that there are, this one among them. */
  get members(): Member[] {
    return [this.own, ...this.#roster.others].toSorted((one, other) =>
      one.row.address < other.row.address ? -1 : one.row.address > other.row.address ? 1 : 0,
    );
  }

  /** Whether another one is there that could take over. */
  get hasSuccessor(): boolean {
    return this.#roster.others.some(({ isPresent, row }) => isPresent && row.weight > 0);
  }

  /** The same, but one that has only just come is waited for until it is known to live. */
  async awaitSuccessor(): Promise<boolean> {
    const { clock, timing } = this.#options;
    const lookMs = Math.min(timing.renewalMs, COMING_MAX_MS / COMING_HEARTBEATS);
    for (let look = 0; look < COMING_HEARTBEATS && !this.hasSuccessor && !this.#isOver; look++)
      await sleep(clock, lookMs);
    return this.hasSuccessor;
  }

  #arm(): void {
    const { clock, timing } = this.#options;
    if (this.#isOver) return;
    this.#timer = clock.after(Math.min(timing.renewalMs, this.#unheardLeftMs), () => this.#beatSoon());
  }

  #beatSoon(): void {
    this.#timer?.cancel();
    const beat = this.#beating.then(() => (this.#isOver ? undefined : this.#beat()));
    this.#beating = beat;
    void beat.then(() => {
      if (this.#beating === beat) this.#arm();
    });
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    const entries = await this.#roster.look();
    const term = this.#options.term();
    if (term === undefined) {
      this.#apply(entries ?? []);
      await this.#options.keepUp?.();
      this.#hearsLeader = this.#listen();
      this.#announceBeside();
      this.#rehearseWhenDue();
      return;
    }
    term.publish();
    this.#judgeHearing(term);
    this.#announceBeside();
    await this.#removeOutdated(term);
  }

  #apply(entries: readonly Entry[]): void {
    const entry = entries.find(({ key }) => key === COORDINATOR_SNAPSHOT_KEY);
    if (entry === undefined) return;
    const decoded = decodeRecord(snapshotRecord, entry.key, entry.value);
    if (decoded.kind !== "ok" || decoded.value.number === this.#snapshot?.number) return;
    this.#snapshot = decoded.value;
    this.#snapshotAtMs = this.#options.clock.monotonicMs();
    this.#options.onPublished?.(decoded.value.epoch);
  }

  #listen(): boolean | undefined {
    const address = this.leader?.address ?? "";
    return address === "" ? undefined : this.#options.hears?.(address);
  }

  /** One at a time: while a row is on its way, heartbeats write no other. */
  #announceBeside(): void {
    this.#announcing ??= this.#announce().finally(() => (this.#announcing = undefined));
  }

  async #announce(): Promise<void> {
    const term = this.#options.term();
    if (this.#isOver || (term !== undefined && !term.mayAct())) return;
    await this.#presence.announce(this.#ownRow(), term?.epochRow);
  }

  #ownRow(): Omit<PresenceRow, "heartbeat"> {
    const { address, standing, role } = this.#options;
    const term = this.#options.term();
    return {
      address,
      weight: standing.weight,
      role: role.name,
      isWilling: role.isWilling,
      epoch: term?.epoch ?? (this.#lease?.holder === null ? null : (this.#lease?.epoch ?? null)),
      snapshotNumber: term?.published() ?? this.#snapshot?.number ?? null,
      rehearsalMs: this.#rehearsal?.tookMs ?? null,
      rehearsedAtWallMs: this.#rehearsal?.atWallMs ?? null,
      hearsLeader: this.#hearsLeader ?? null,
      electedAtWallMs: term?.electedAtWallMs ?? null,
    };
  }

  /** Beside the heartbeats, which do not wait for it. */
  #rehearseWhenDue(): void {
    const { clock, events, log, rehearse } = this.#options;
    const beganMs = clock.monotonicMs();
    if (beganMs < this.#nextRehearsalMs || this.#snapshot === undefined) return;
    const rehearsed = rehearse();
    if (rehearsed === undefined) return;
    this.#nextRehearsalMs = Infinity;
    const again = (): void => void (this.#nextRehearsalMs = clock.monotonicMs() + REHEARSAL_INTERVAL_MS);
    this.#rehearsing = rehearsed.then(
      () => {
        const tookMs = Math.round(clock.monotonicMs() - beganMs);
        this.#rehearsal = { tookMs, atWallMs: clock.wallMs() };
        const { epoch, snapshotNumber } = this.#ownRow();
        const snapshot_number = snapshotNumber ?? 0;
        events.emit("coordinator_rehearsed", { epoch, snapshot_number, replay_ms: tookMs });
        again();
      },
      (err: unknown) => {
        log.error("the replay failed when it was rehearsed: this coordinator could not lead now", { err });
        again();
      },
    );
  }

  /**
   * A network that cuts a leader off from its workers alone leaves it its lease: those who hear no leader say so in the store. While most
   * of them do, and no worker is heard, it takes nothing from workers that it may be to blame for not hearing.
   */
  #judgeHearing({ epoch, unheardForMs, holdJudgement, giveUp }: LeaderTerm): void {
    const { timing, failureTimeoutMs } = this.#options;
    const present = this.#roster.others.filter(({ isPresent }) => isPresent);
    // A row may still tell of the leader before.
    const deaf = present.filter(({ row }) => row.hearsLeader === false && row.epoch === epoch);
    const [areMostDeaf, forMs] = [2 * deaf.length > present.length, unheardForMs()];
    holdJudgement(areMostDeaf && forMs >= UNHEARD_HEARTBEATS * timing.renewalMs);
    const leftMs = Math.max(timing.ttlMs, failureTimeoutMs) - forMs;
    this.#unheardLeftMs = areMostDeaf && leftMs > 0 ? leftMs : Infinity;
    if (!areMostDeaf || leftMs > 0) return;
    giveUp(`no worker is heard, and ${deaf.length} of ${present.length} coordinators do not hear this one`);
  }

  async #removeOutdated({ epochRow, mayAct }: LeaderTerm): Promise<void> {
    if (mayAct()) await this.#remove(this.#roster.outdated(this.#options.removeAfterMs), epochRow);
  }

  async #remove(entries: readonly Entry[], epochRow?: Expectation): Promise<void> {
    if (entries.length === 0) return;
    const rows = entries.map(({ key, value }) => ({ key, value }));
    await this.#options.store.commit({
      puts: [],
      deletes: entries.map(({ key }) => key),
      expect: epochRow === undefined ? rows : [...rows, epochRow],
      durability: "flush",
    });
  }
}
