// Lines of the timeline: events of the cluster that are worth one, in words. Names and reasons are text of others, and are shown as text.
import { printable } from "../base/safe-text.ts";
import type { Topic } from "../observe/events.ts";
import type { TimelineEvent } from "./page-messages.ts";
import type { Happening, NewStep } from "./run-source.ts";

type Fields = Happening["fields"];

const WORDS_MAX = 200;

const SENTENCES: { readonly [T in Topic]?: (fields: Fields) => string } = {
  worker_registered: (fields) => `${worker(fields)} has joined, with ${of(fields, "slots")} slots`,
  worker_suspected: (fields) => `${worker(fields)} is late with its heartbeat`,
  worker_failed: (fields) => `${worker(fields)} counts as lost`,
  worker_recovered: (fields) => `${worker(fields)} speaks again`,
  worker_removed: (fields) => `${worker(fields)} was forgotten`,
  worker_deregistered: (fields) => `${worker(fields)} has left in good order`,
  worker_superseded: (fields) => `${worker(fields)} was started a second time: the older process ends`,
  worker_cordoned: (fields) => `${worker(fields)} is cordoned: it failed ${of(fields, "failures")} in a row`,
  worker_uncordoned: (fields) => `${worker(fields)} is cordoned no more`,
  drain_started: (fields) => `${worker(fields)} drains`,
  work_stolen: (fields) =>
    `${of(fields, "items")} items went from worker ${of(fields, "victim_id")} to one with nothing to do`,
  run_paused: (fields) => `the run is paused: ${of(fields, "reason")}`,
  run_resumed: (fields) => `the run goes on, ${of(fields, "pending")} items wait`,
  run_cancelled: () => "the run is cancelled",
  run_completed: (fields) =>
    `the run is complete: ${of(fields, "done")} done, ${of(fields, "failed")} failed`,
  run_reopened: (fields) => `the run goes on: ${of(fields, "pending")} items wait again`,
  certificate_revoked: (fields) => `the certificate of ${of(fields, "bearer_id")} was revoked`,
  coordinator_leading: (fields) => `${of(fields, "address")} leads, epoch ${of(fields, "epoch")}`,
};

/** Undefined for what is worth no line, and for topics of a newer coordinator. */
export function timelineEvent({ at_ms, topic, fields }: Happening): TimelineEvent | undefined {
  const sentence = Object.hasOwn(SENTENCES, topic) ? SENTENCES[topic as Topic] : undefined;
  if (sentence === undefined) return undefined;
  return { at_ms, topic, words: sentence(fields).slice(0, WORDS_MAX) };
}

const DRAINING = /\bDraining\b/;

/** A drain begins at its worker, whose own events the coordinator does not have: its chart says so. */
export function drainOf({ at_ms, chart, actor, from, to }: NewStep): Happening | undefined {
  if (chart !== "worker-lifecycle" || !DRAINING.test(to) || DRAINING.test(from)) return undefined;
  return { at_ms, topic: "drain_started", fields: { worker_id: actor } };
}

function worker(fields: Fields): string {
  return `worker ${of(fields, "worker_id")}`;
}

function of(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" || typeof value === "number" ? printable(String(value)) : "?";
}
