// Effects of committed turns, carried out (C2). Nothing here decides, and nothing here may throw: a turn is over. A reading
// that a turn has asked for comes back as an input.
import { unreachable } from "../base/assert.ts";
import type { AwaitedValue } from "../base/awaited-value.ts";
import { failure } from "../base/errors.ts";
import type { EventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import type { FleetPorts } from "./fleet/fleets.ts";
import type { FollowedKeys } from "./rpc/followed-keys.ts";
import type { Sight } from "./sight/sight.ts";
import type { Input } from "./turn/input.ts";
import type { RunReach } from "./turn/run-terms.ts";
import { examineClaims, examineReport } from "./read/examine-items.ts";
import { loadKeys } from "./read/load-keys.ts";
import { readStates } from "./read/read-states.ts";
import { loadWindow } from "./read/load-window.ts";
import { findUnindexed, readScrubPage, verifyLedger } from "./read/verify-ledger.ts";
import type { Effect } from "./turn/turn.ts";

export interface EffectPorts {
  readonly store: Store;
  readonly events: EventEmitter;
  readonly log: Logger;
  /** Told how far the run has got. */
  readonly reach?: AwaitedValue<RunReach> | undefined;
  /** Told of keys that are waited for. */
  readonly followedKeys?: FollowedKeys | undefined;
  /** The providers of fleets. */
  readonly fleets?: FleetPorts | undefined;
  /** Told of steps of charts, and of events. */
  readonly sight?: Sight | undefined;
  /** Takes what was read. An input that is read for the reactor is never refused for want of room. */
  readonly feed: (input: Input) => void;
  readonly onFatal: (error: unknown) => void;
  /** Keeps these bearers out. Total. */
  readonly onRevoked?: ((ids: readonly string[]) => void) | undefined;
  /** Whether the store says too that this coordinator leads. Never rejects. */
  readonly isLeader: () => Promise<boolean>;
  /** For look-ups that there may be many of at once and that may read much: one at a time. */
  readonly inTurn: <T>(lookUp: () => Promise<T>) => Promise<T>;
}

export function performEffect(effect: Effect, ports: EffectPorts): void {
  switch (effect.kind) {
    case "event":
      ports.sight?.event(effect.emit);
      return ports.events.emit(effect.emit.topic, effect.emit.payload);
    case "warning":
      return ports.log.warn(effect.message, effect.fields);
    case "transition": {
      const { chart, address, event, from, to } = effect;
      ports.sight?.step(effect);
      return ports.log[chart === "work-item" ? "debug" : "info"]("transition", { address, event, from, to });
    }
    case "send":
      return effect.port.send(effect.frame);
    case "endSession":
      return effect.port.end();
    case "revoked":
      return ports.onRevoked?.(effect.ids);
    case "loadWindow":
    case "loadKeys":
    case "readStates":
    case "examineClaims":
    case "examineReport":
    case "verifyLedger":
    case "scrubLedger":
    case "confirmLeadership":
    case "readCounts":
      return read(effect, ports);
    case "damaged": {
      const { damage } = effect;
      const reason = damage.kind === "corrupt" ? damage.reason : `it has version ${damage.found}`;
      return ports.onFatal(failure("store_corrupt", { path: ports.store.location, key: damage.key, reason }));
    }
    case "reached":
      return ports.reach?.tell(effect.reach);
    case "keysMoved":
      return ports.followedKeys?.tell(effect.news);
    case "askProvider":
      return void ports.fleets
        ?.ask(effect.question)
        .then((heard) => ports.feed({ kind: "fleetHeard", heard }));
    case "answer":
      return effect.deliver();
    default:
      return unreachable(effect, "effect");
  }
}

type Reading = Extract<
  Effect,
  {
    readonly kind:
      | "loadWindow"
      | "loadKeys"
      | "readStates"
      | "examineClaims"
      | "examineReport"
      | "verifyLedger"
      | "scrubLedger"
      | "confirmLeadership"
      | "readCounts";
  }
>;

/** The answer comes back as an input. */
function read(effect: Reading, ports: EffectPorts): void {
  switch (effect.kind) {
    case "loadWindow":
      loadWindow(ports.store, effect.load).then(
        (loaded) => ports.feed({ kind: "loaded", loaded }),
        ports.onFatal,
      );
      return;
    case "loadKeys":
      loadKeys(ports.store, effect.load).then(
        (loaded) => ports.feed({ kind: "keysLoaded", loaded }),
        ports.onFatal,
      );
      return;
    case "readStates":
      ports
        .inTurn(() => readStates(ports.store, effect.reading))
        .then((read) => ports.feed({ kind: "statesRead", read }), ports.onFatal);
      return;
    case "examineClaims": {
      const { statement, cursors } = effect;
      ports
        .inTurn(() => examineClaims(ports.store, statement.claims, cursors))
        .then((found) => ports.feed({ kind: "claimsExamined", statement, found }), ports.onFatal);
      return;
    }
    case "examineReport": {
      const { late, cursors } = effect;
      ports
        .inTurn(() => examineReport(ports.store, late, cursors))
        .then((found) => ports.feed({ kind: "examined", late, found }), ports.onFatal);
      return;
    }
    case "verifyLedger":
      verifyLedger(ports.store, effect.numbers, effect.keyNumbers).then(
        (damage) => ports.feed({ kind: "verified", damage }),
        ports.onFatal,
      );
      return;
    case "scrubLedger":
      readScrubPage(ports.store, effect.request, findUnindexed).then(
        (page) => ports.feed({ kind: "scrubbed", page }),
        ports.onFatal,
      );
      return;
    case "confirmLeadership":
      void ports.isLeader().then((leads) => ports.feed({ kind: "leadershipConfirmed", leads }));
      return;
    case "readCounts": {
      const { key } = effect;
      ports.store
        .get(key)
        .then((value) => ports.feed({ kind: "releaseCountsRead", key, value }), ports.onFatal);
      return;
    }
    default:
      return unreachable(effect, "reading");
  }
}
