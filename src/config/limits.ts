// Every maximum of the program in one place (C8): what is bounded, by how much, and why that much. A limit that another
// depends on is checked against it in `assertLimits`, so that nobody moves one alone.
import { assert } from "../base/assert.ts";

const KIB = 2 ** 10;
const MIB = 2 ** 20;

export const LIMITS = Object.freeze({
  /** A configuration file. Larger ones are some other file that was named by mistake. */
  configFileBytes: MIB,

  /** Coordinators that a client is given to ask. */
  coordinators: 16,
  /** Workers that one coordinator registers, the failed ones that are not yet removed included. */
  workers: 10_000,
  /** Workers that one enrolment bundle lets in, unless `enrolment.quota` says otherwise, and what that may say. */
  enrolledPerBundle: 1_000,
  enrolledPerBundleMax: 100_000,
  /** Bearers of certificates that are revoked, each for good. */
  revocations: 10_000,
  /** Plugins in one heartbeat. */
  pluginsPerBeat: 64,
  /** A plugin's name, and its version. */
  pluginTextBytes: 128,
  /** Numbers that are read in one output. */
  numbersPerOutput: 16,
  /** A worker's words for the trouble that its backends have. */
  troubleBytes: 256,
  /** Slots that a worker may offer. */
  slotsPerWorker: 1_024,
  /** Items that a worker may have beyond its slots, whatever it asks for: as many as the largest of ours does. */
  backlogPerWorker: 4_096,
  /** An item's payload, and its output, unless `limits.payload` and `limits.output` say otherwise, and what they may say. */
  payloadBytes: MIB,
  outputBytes: MIB,
  /** The state of a key, unless `limits.state` says otherwise. */
  stateBytes: 256 * KIB,
  /** Larger data belongs in files or object storage, by reference. */
  dataMaxBytes: 16 * MIB,
  /** The end of what one attempt wrote to its standard error. */
  attemptLogBytes: 64 * KIB,
  /** The answer of a server that refused an item, as it is kept beside the message of the failure. */
  responseBytes: 16 * KIB,
  /** Messages of failures that are counted apart, and what of each is kept and shown. */
  failureMessages: 64,
  failureMessageCharacters: 256,
  /** How many of them whoever asks for the run is told. */
  failureMessagesShown: 5,
  /** Failed items that a new leader reads for them, and how many bytes of them. */
  failuresReadAtStart: 1_000,
  failureBytesReadAtStart: 4 * MIB,
  /** A checkpoint, which an attempt leaves for the next one. */
  checkpointBytes: MIB,
  /** How an input names an item, or its key. */
  itemTextBytes: 256,
  /** A run's task in words. */
  taskSummaryBytes: 4 * KIB,
  /** Keys of a run: each is in the leader's memory. */
  keys: 1_048_576,
  /** Messages, and named actions, that one result of an actor asks for; and all that it asks for, beside the state. */
  sendsPerResult: 256,
  asksBytes: MIB,
  /** Invocations and children of one actor that live, and its timers. */
  livePerActor: 64,
  timersPerActor: 64,
  /** Timers of a run, and their events: they are in the leader's memory. */
  timers: 262_144,
  timerBytes: 64 * MIB,
  /** Items of one key when an actor sends it more, unless `limits.mail` says otherwise. */
  mailbox: 100_000,
  /** Inputs that wait for the reactor: a heartbeat of every worker, twice over. */
  inboxInputs: 20_000,

  /** The smallest buffer for events: fewer bytes than one event has would drop every one. */
  eventsBufferMinBytes: 64 * KIB,
  eventsBufferMaxBytes: 1_024 * MIB,
  /** The longest line of one event: a `worker_registered` with every plugin that a beat may name. */
  eventLineBytes: 32 * KIB,
  /** Log lines that wait for a slow reader of standard error. */
  logBufferBytes: 4 * MIB,
});

/** Limits of a run's items, by its configuration. */
export interface ItemLimits {
  readonly payloadBytes: number;
  readonly outputBytes: number;
  readonly stateBytes: number;
}

/** Relations between limits. Called once at start; a failure is a mistake in the table above. */
export function assertLimits(): void {
  assert(LIMITS.inboxInputs >= 2 * LIMITS.workers, "the inbox holds two beats of every worker");
  assert(LIMITS.eventsBufferMinBytes >= 2 * LIMITS.eventLineBytes, "the least buffer holds two events");
  assert(
    // `{"name":"…","version":"…"},` around two texts, and half a kilobyte for the rest of the line.
    LIMITS.eventLineBytes >= LIMITS.pluginsPerBeat * (2 * LIMITS.pluginTextBytes + 26) + 512,
    "a registration with every plugin fits in an event line",
  );
}
