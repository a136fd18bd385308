// A backend, the server that it asks, and time that stands still: what tests of the backend have in common.
import type { Clock } from "../../../../../src/base/clock.ts";
import { systemClock } from "../../../../../src/base/clock.ts";
import { seededRandom } from "../../../../../src/base/random.ts";
import { parseManifest } from "../../../../../src/config/manifest.ts";
import type { HttpSpec } from "../../../../../src/config/manifest-fields.ts";
import type { ItemAttempt, ItemReport, Outcome } from "../../../../../src/worker/backends/backend.ts";
import type { Children } from "../../../../../src/worker/children/child.ts";
import { HttpBackend } from "../../../../../src/worker/backends/http/http-backend.ts";
import type { HttpBackendOptions } from "../../../../../src/worker/backends/http/http-backend.ts";
import { eventually } from "../../../../support/eventually.ts";
import { RecordingLogger } from "../../../../support/recording-logger.ts";
import { itemId } from "../../../../support/scripted-coordinator.ts";
import type { VirtualClock } from "../../../../support/virtual-clock.ts";

/** The spec of a manifest whose table `[http]` has these lines. */
export function specOf(...lines: readonly string[]): HttpSpec {
  const head = ['name = "ask"', 'version = "1"', 'backend = "http"', "[http]"];
  const manifest = parseManifest("/tmp/ask.toml", [...head, ...lines].join("\n"));
  if (manifest.backend !== "http") throw new Error("it is what was written");
  return manifest.spec;
}

function attemptOf(payload: unknown, more: Partial<ItemAttempt> = {}): ItemAttempt {
  const bytes = payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload));
  return {
    itemId: itemId(1),
    attempt: 1,
    payload: bytes,
    checkpoint: new Uint8Array(0),
    alone: false,
    env: {},
    ...more,
  };
}

/** A body of a chat that asks `text`; `more` are further fields. */
export function chat(text: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { messages: [{ role: "user", content: text }], ...more };
}

const NO_CHILDREN: Children = {
  spawn: () => Promise.reject(new Error("nothing is to be started here")),
};

export interface Asking {
  readonly backend: HttpBackend;
  readonly logger: RecordingLogger;
  /** Why it said that it is broken. */
  readonly broken: string[];
  readonly logs: string[];
  /** Its other reports: whether it waits. */
  readonly reports: string[];
  readonly ask: (payload: unknown, signal?: AbortSignal, more?: Partial<ItemAttempt>) => Promise<Outcome>;
}

export function makeBackend(spec: HttpSpec, more: Partial<HttpBackendOptions> = {}): Asking {
  const [broken, logs, reports] = [[] as string[], [] as string[], [] as string[]];
  const logger = new RecordingLogger();
  const backend = new HttpBackend({
    spec,
    slots: 4,
    maxOutputBytes: 1_048_576,
    env: {},
    workingDirectory: "/",
    children: NO_CHILDREN,
    clock: systemClock,
    random: seededRandom(1),
    log: logger,
    onBroken: (reason) => void broken.push(reason),
    ...more,
  });
  const report = (news: ItemReport): void => {
    if (news.kind === "log") logs.push(Buffer.from(news.chunk).toString());
    else reports.push(news.kind);
  };
  const never = new AbortController().signal;
  return {
    backend,
    logger,
    broken,
    logs,
    reports,
    ask: (payload, signal = never, rest = {}) => backend.execute(attemptOf(payload, rest), signal, report),
  };
}

/** Lets time pass in small steps until there is something to look at. */
export function passUntil<T>(
  clock: VirtualClock,
  what: string,
  look: () => T | undefined | false,
  stepMs = 50,
): Promise<T> {
  return eventually(what, async () => {
    const found = look();
    if (found === undefined || found === false) await clock.advance(stepMs);
    return found;
  });
}

/** The outcome, and time passes until there is one. */
export async function settleWith(
  clock: VirtualClock,
  ending: Promise<Outcome>,
  stepMs = 50,
): Promise<Outcome> {
  let outcome: Outcome | undefined;
  void ending.then((one) => (outcome = one));
  return passUntil(clock, "an outcome", () => outcome, stepMs);
}

/** Resolves when everything that was sent has arrived, and everything that this led to as well. */
export async function settleSockets(clock: Clock = systemClock): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise<void>((resolve) => clock.after(1, resolve));
}

/** The output of a success as text; the outcome itself for any other. */
export function textOf(outcome: Outcome): unknown {
  return outcome.kind === "success" ? Buffer.from(outcome.output).toString() : outcome;
}

/** The output of a success as JSON; the outcome itself for any other. */
export function jsonOf(outcome: Outcome): unknown {
  return outcome.kind === "success"
    ? (JSON.parse(Buffer.from(outcome.output).toString()) as unknown)
    : outcome;
}
