// The layer table: which room of the house stands on which. Imports go down only, rooms of one layer never import each
// other, and a room that is not named here does not exist; the same within a room that has rooms of its own.
// .dependency-cruiser.mjs turns it into rules.

export interface Layer {
  readonly name: string;
  /** Folders, or single files, relative to the repository. */
  readonly rooms: readonly string[];
}

/** From the ground up. */
export const LAYERS: readonly Layer[] = [
  { name: "0a", rooms: ["src/base"] },
  { name: "0b", rooms: ["machines", "src/gen"] },
  { name: "1", rooms: ["src/config", "src/observe"] },
  { name: "2", rooms: ["src/storage", "src/transport", "src/fleet"] },
  { name: "3a", rooms: ["src/runtime"] },
  { name: "3b", rooms: ["src/charts"] },
  { name: "4", rooms: ["src/coordinator", "src/worker", "src/inspector", "src/client"] },
  { name: "5a", rooms: ["src/cli"] },
  { name: "5b", rooms: ["src/compose"] },
  { name: "5c", rooms: ["src/commands", "src/index.ts", "src/actors.ts"] },
];

/** Files that stand directly in a room which has rooms of its own. */
export const HALL = ".";

/**
 * Rooms of a room, from the ground up: each may import itself and what stands on a floor below. By name, and with what it owns.
 */
export const FLOORS: Readonly<Record<string, readonly Readonly<Record<string, string>>[]>> = {
  "src/coordinator": [
    {
      ledger: "items and their places, ids and records: stored, in memory, in queues, and in numbers",
      lead: "leadership: the lease, those who compete for it, and the watchdog of a leader",
      fleet:
        "fleets: how many workers are asked for, which one goes, and the books; it knows no ledger and no provider",
      release:
        "releases: which version an item gets, what became of it, and what follows; it knows no ledger",
    },
    {
      keys: "keys: their order, their states and what waits behind them; what actors ask for; the ring, and their partitions",
    },
    {
      turn: "what a turn is: inputs, the state that they change, the batch and the effects; answers and frames",
    },
    {
      items: "every move of an item by its chart, with the rows that it writes; the ledger of a new leader",
      read: "what is read from the store alone: results, one item, lost claims, pages for windows and the scrub",
    },
    { workers: "the registry: beats, silence and restarts, trust, enrolment; work taken back from workers" },
    { schedule: "who gets which item: dispatch, steals, recalls" },
    { run: "the run by its chart: its limits, submissions, status, and what operators ask of it" },
    {
      sight:
        "the sight of a leader for who looks on: its charts as they move, items at work, the course of the run",
    },
    {
      session: "a worker's session: claims reconciled, reports settled, late results judged",
      rpc: "the wire: services, who may call them, checks of messages, nothing decided",
    },
    {
      quarantine: "rows that cannot be read: found, set aside, and the rest of such a run served",
      [HALL]: "a coordinator put together: the reactor, its loop, its effects carried out, and its replay",
    },
  ],
  "src/inspector": [
    {
      [HALL]: "the server of the page of `rollout inspect`, and the hub that asks the run once for all pages",
    },
    { page: "the page itself, for browsers: of all else it has the types of the messages alone" },
  ],
  "src/worker": [
    {
      children:
        "processes of other people's code: started, named on the disk, ended with all that they started",
      preemption: "notices of clouds, and what else ends a worker, as hints",
    },
    { backends: "the port that executes an item, one folder for each kind, and the plugins that hold them" },
    { work: "items at this worker: waiting, executing, and as results on their way; checkpoints" },
    { partitions: "states of keys that are kept where they are used, and checkpoints of them" },
    { link: "the way to the coordinator: the session, its messages, streams opened again, epochs obeyed" },
    { life: "one worker's life: its directory and records, beats and self-fence, certificate, drain" },
    { [HALL]: "a worker put together, and its workload: items, session and outbox as one" },
  ],
};

/** Where the program is put together: only here an implementation of a port is picked. */
export const COMPOSITION: readonly string[] = [
  "src/compose",
  "src/commands",
  "src/index.ts",
  "src/actors.ts",
];

/** Implementations of ports, by regular expression. Nobody imports one but itself, the composition and tests. */
export const ADAPTERS: readonly string[] = [
  "src/storage/(?:level|memory|postgres)",
  "src/fleet/(?:exec|ssh)",
  "src/worker/backends/(?:mock|command|process|http|module|machine)",
  "src/worker/partitions/(?:directory-store|s3-)",
  // All but the port.
  "src/worker/preemption(?!/compute-hint\\.ts)",
];

/** The only packages that a room may import; a room that is not named may import any dependency of the product. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "src/base": [],
  machines: ["xstate"],
  "src/gen": ["@bufbuild/protobuf"],
};

/** The code of clouds, which the coordinator never reaches, not even through others. */
export const CLOUD_CODE: readonly string[] = [
  "src/worker/(?:backends|preemption)",
  "node_modules/(?:@aws-sdk|@google-cloud|@azure|google-auth-library|gcp-metadata)",
];

/** Folders that stand beside the product, which never imports them. */
export const OUTSIDE: readonly string[] = ["test", "bench", "examples", "scripts"];

/** A regular expression for every file of a room. */
export function roomPattern(room: string): string {
  if (room.endsWith(`/${HALL}`)) return `^${room.slice(0, -HALL.length)}[^/]+$`;
  return room.endsWith(".ts") ? `^${room.replaceAll(".", "\\.")}$` : `^${room}/`;
}

/** Each floor of a room, from the ground up: the paths of its rooms. */
export function floorsOf(room: string): readonly (readonly string[])[] {
  return (FLOORS[room] ?? []).map((floor) => Object.keys(floor).map((name) => `${room}/${name}`));
}

/** Every room that has files of its own. */
export function allRooms(): readonly string[] {
  return LAYERS.flatMap(({ rooms }) => rooms).flatMap((room) =>
    room in FLOORS ? floorsOf(room).flat() : [room],
  );
}
