// Whether what a result asks for can be done, all of it: looked at before anything is committed, so that an actor that asks for too much,
// or for what is not its own, fails its event and nothing else.
import { LIMITS } from "../../config/limits.ts";
import type { Asks, SetTimer, Start } from "../ledger/asks.ts";
import type { Fault, LeftState } from "../ledger/key-room.ts";
import type { Key } from "./key.ts";
import type { KeyTable } from "./key-table.ts";
import type { Timers } from "./timers.ts";

/** The parts of the room that are asked. */
export interface Measures {
  readonly table: KeyTable;
  readonly timers: Timers;
  /** Items that one mailbox may have when it is sent more. */
  readonly maxMail: number;
}

/** Control characters, line ends among them: the mark of a lane is one. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;
/** A hundred years. */
const DELAY_MAX_MS = 36_525 * 86_400_000;

/** Undefined when all of it can be done. */
export function faultOf(measures: Measures, key: Key | undefined, left: LeftState): Fault | undefined {
  const breach = breachOf(key, left);
  if (breach !== undefined) return { reason: breach, isBreach: true };
  const reason = faultOfState(key, left) ?? (key && left.asks && faultOfAsks(measures, key, left.asks));
  return reason === undefined ? undefined : { reason, isBreach: false };
}

/** In words, as all that follow. */
function faultOfAsks(measures: Measures, key: Key, asks: Asks): string | undefined {
  return (
    faultOfChildren(measures, key, asks) ??
    faultOfTimers(measures, key, asks) ??
    faultOfSends(measures, key, asks)
  );
}

function faultOfState(
  key: Key | undefined,
  { state, basedOn, stateVersion: is = 0 }: LeftState,
): string | undefined {
  const [commit, was] = [key?.statedCommit ?? 0, key?.stateVersion ?? 0];
  if (is < was && state !== "kept") return `its state is of version ${is}, and was of ${was}`;
  if (basedOn !== commit)
    return `the state that it began with is of commit ${basedOn}, and its key has that of ${commit}`;
  return undefined;
}

/** A worker of ours looks at these itself before it reports. */
function breachOf(key: Key | undefined, { state, asks }: LeftState): string | undefined {
  if (key?.isLane === true && (state !== "kept" || asks !== undefined))
    return "it leaves a state or asks for something, and is no event of an actor";
  if (asks === undefined) return undefined;
  const fault = faultOfSize(asks) ?? faultOfNames(asks);
  return fault ?? (key && (faultOfStarts(key, asks) ?? faultOfTimerCount(key, asks)));
}

/** Keys of lanes are none that anybody sends to. */
function faultOfNames({ sends, timers }: Asks): string | undefined {
  const no = [...sends, ...timers].find(({ to }) => to !== "" && !isName(to));
  return no && `it sends to ${JSON.stringify(no.to.slice(0, LIMITS.itemTextBytes))}, which is no key`;
}

function faultOfSize({
  stopped,
  cancelled,
  timers,
  invocations,
  children,
  sends,
  actions,
  final,
}: Asks): string | undefined {
  const { sendsPerResult, asksBytes } = LIMITS;
  if (sends.length > sendsPerResult)
    return `it sends ${sends.length} messages, and at most ${sendsPerResult} are sent at once`;
  if (actions.length > sendsPerResult)
    return `it asks for ${actions.length} actions, and at most ${sendsPerResult} are asked for at once`;
  let bytes = (final?.output.length ?? 0) + Buffer.byteLength(final?.error ?? "");
  for (const id of [...stopped, ...cancelled]) bytes += id.length;
  for (const { id, event, to } of timers) bytes += id.length + event.length + to.length;
  for (const { id, source, input } of [...invocations, ...children])
    bytes += id.length + source.length + input.length;
  for (const { to, event } of sends) bytes += to.length + event.length;
  for (const { type, params } of actions) bytes += type.length + params.length;
  if (bytes > asksBytes)
    return `it asks for ${bytes} bytes beside its state, and at most ${asksBytes} are taken`;
  const names = [...invocations, ...children].flatMap(({ id, source }) => [id, source]);
  for (const name of [...names, ...timers.map(({ id }) => id), ...actions.map(({ type }) => type)])
    if (!isName(name))
      return `it names ${JSON.stringify(name.slice(0, LIMITS.itemTextBytes))}, which is no name of at most ${LIMITS.itemTextBytes} bytes`;
  return undefined;
}

/** A key has to be one too. */
function isName(text: string): boolean {
  return text !== "" && Buffer.byteLength(text) <= LIMITS.itemTextBytes && !UNPRINTABLE.test(text);
}

function faultOfStarts(key: Key, asks: Asks): string | undefined {
  const live = new Set(key.actor?.live.keys());
  for (const id of asks.stopped)
    if (!live.delete(id)) return `it stops ${JSON.stringify(id)}, which it has not started`;
  // The event that it takes may be the end of one: it may begin another of that name.
  live.delete(endedOf(key) ?? "");
  for (const { id } of [...asks.invocations, ...asks.children]) {
    if (live.has(id)) return `it starts ${JSON.stringify(id)}, which it has already`;
    live.add(id);
  }
  if (live.size > LIMITS.livePerActor)
    return `it has ${live.size} invocations and children, and an actor may have ${LIMITS.livePerActor}`;
  return undefined;
}

function faultOfTimerCount({ actor }: Key, { cancelled, timers }: Asks): string | undefined {
  const armed = new Set(actor?.timers.keys());
  for (const id of cancelled) armed.delete(id);
  for (const { id } of timers) armed.add(id);
  const { timersPerActor } = LIMITS;
  if (armed.size <= timersPerActor || timers.length === 0) return undefined;
  return `it has ${armed.size} timers, and an actor may have ${timersPerActor}`;
}

function faultOfChildren({ table }: Measures, key: Key, asks: Asks): string | undefined {
  for (const child of asks.children) {
    const fault = faultOfChild(table, key, asks, child);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The id of the invocation or child whose end its head tells of; undefined when it tells of none. */
function endedOf({ head, actor }: Key): string | undefined {
  const { origin } = head?.item ?? head ?? {};
  if (origin?.kind !== "outcome" && origin?.kind !== "failure") return undefined;
  return actor?.live.get(origin.id)?.number === origin.number ? origin.id : undefined;
}

function faultOfChild(table: KeyTable, key: Key, { stopped }: Asks, { id }: Start): string | undefined {
  const text = `${key.text}/${id}`;
  if (id.includes("/") || !isName(text))
    return `it starts a child ${JSON.stringify(id)}, and ${JSON.stringify(text)} is no key`;
  const isOwn = stopped.includes(id) && key.actor?.live.get(id)?.isChild === true;
  const other = table.get(text);
  return other !== undefined && other.actor?.isGone !== true && !isOwn
    ? `it starts a child ${JSON.stringify(id)}, and there is a key ${text}`
    : undefined;
}

function faultOfTimers({ timers, table }: Measures, key: Key, asks: Asks): string | undefined {
  if (asks.timers.length === 0) return undefined;
  const armed = new Map([...(key.actor?.timers ?? [])].map(([id, { event }]) => [id, event.length]));
  const before = { count: armed.size, bytes: sumOf(armed) };
  for (const id of asks.cancelled) armed.delete(id);
  for (const timer of asks.timers) {
    const fault = faultOfTimer(table, timer);
    if (fault !== undefined) return fault;
    armed.set(timer.id, timer.event.length);
  }
  const { timers: all, timerBytes } = LIMITS;
  if (timers.armed - before.count + armed.size > all)
    return `it sets a timer, and all ${all} of the run are armed`;
  if (timers.bytes - before.bytes + sumOf(armed) > timerBytes)
    return `it sets a timer, and the events of all timers have ${timerBytes} bytes at most`;
  return undefined;
}

function sumOf(sizes: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const size of sizes.values()) sum += size;
  return sum;
}

function faultOfTimer(table: KeyTable, { id, to, delayMs, isOptional }: SetTimer): string | undefined {
  if (delayMs > DELAY_MAX_MS) return `its timer ${JSON.stringify(id)} is due in more than a hundred years`;
  if (to === "") return undefined;
  return faultOfReceiver(table, to, isOptional);
}

function faultOfReceiver(table: KeyTable, to: string, isOptional: boolean): string | undefined {
  const isFinal = table.get(to)?.actor?.isFinal === true;
  return isFinal && !isOptional ? `it sends to ${to}: actor_done, it takes no events any more` : undefined;
}

function faultOfSends({ table, maxMail }: Measures, key: Key, { sends, children }: Asks): string | undefined {
  const counts = new Map<string, number>();
  const fresh = new Set(children.map(({ id }) => `${key.text}/${id}`));
  for (const { to, isOptional } of sends) {
    const fault = faultOfReceiver(table, to, isOptional);
    if (fault !== undefined) return fault;
    const receiver = table.get(to);
    if (!isThere(receiver) && isOptional) continue;
    if (receiver === undefined) fresh.add(to);
    const count = (counts.get(to) ?? receiver?.row.context.mail ?? 0) + 1;
    if (count > maxMail) return `it sends to ${to}, which has ${maxMail} items waiting (limits.mail)`;
    counts.set(to, count);
  }
  const full = fresh.size === 0 ? undefined : table.findFull(fresh);
  return full && `it makes a key ${full.key}, and partition ${full.partition} has ${full.limit} keys already`;
}

/** Whether mail to it reaches an actor, or makes one. */
export function isThere(key: Key | undefined): key is Key {
  return key !== undefined && key.actor?.isGone !== true && key.actor?.isFinal !== true;
}
