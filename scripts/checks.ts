// Every check there is, in the order in which they start. scripts/test.ts runs them; the canaries in test/canaries prove
// of each that it can fail.

import { COMPILER } from "./compiler.ts";

export interface Check {
  readonly name: string;
  /** `static` reads the source, `setup` prepares the machine, `tests` is a run of mocha whose tests are counted. */
  readonly kind: "setup" | "static" | "tests";
  readonly command: readonly [string, ...string[]];
  /** Names of checks that must have ended, well or not, before this one starts. */
  readonly after?: readonly string[];
  /** It mostly waits for deadlines, so it takes none of the cores: it runs beside the others. */
  readonly mostlyWaits?: true;
  /** After this it is killed, and has failed. */
  readonly limitMs: number;
}

// Limits are guards against what hangs, not demands on speed: a machine that does much else at the same time passes too. A
// check has eight times what it takes on two quiet cores and more, as a test has, and never less than half a minute.
const STATIC_LIMIT_MS = 600_000;
const TESTS_LIMIT_MS = 1_800_000;
const UNIT_TEST_LIMIT_MS = 180_000;
/** Some of these wait for half a minute, and many wait side by side for their turn. */
const PROCESSES_TEST_LIMIT_MS = 600_000;

function reads(name: string, ...command: [string, ...string[]]): Check {
  return { name, kind: "static", command, limitMs: STATIC_LIMIT_MS };
}

function tests(name: string, timeoutMs: number, ...files: string[]): Check {
  const command: [string, ...string[]] = ["mocha", "--timeout", String(timeoutMs), ...files];
  return { name, kind: "tests", command, limitMs: TESTS_LIMIT_MS };
}

function endToEnd(name: string): string {
  return `test/e2e/${name}.test.ts`;
}

function afterStatic(check: Check, ...others: string[]): Check {
  return { ...check, after: ["extras", ...STATIC.map(({ name }) => name), ...others] };
}

const STATIC: readonly Check[] = [
  reads("build", "node", "scripts/build.ts"),
  reads("lint", "eslint", "--max-warnings", "0", "."),
  reads("lint-types", "oxlint", "--type-aware", "--disable-nested-config", "--deny-warnings", "."),
  reads("types", "node", COMPILER, "-p", "tsconfig.json"),
  reads("exports", "knip"),
  // For browsers, with their library in place of Node's.
  reads("types-page", "node", COMPILER, "-p", "src/inspector/page/tsconfig.json"),
  // An export that only tests use is unused, unless its comment says `@internal`: a seam that tests need.
  reads("exports-product", "knip", "--production", "--config", "knip.product.json"),
  reads("format", "oxfmt", "--check", "."),
  reads("layers", "node", "scripts/check-layers.ts"),
  reads("gen", "node", "scripts/check-gen.ts"),
  reads("proto-lint", "buf", "lint"),
  reads("proto-breaking", "node", "scripts/check-breaking.ts"),
];

/** End to end tests that mostly wait, for a deadline of the protocol or for items: side by side with the others they cost little. */
const WAITING = [
  ...["*-witness", "actors-upgrade", "checkpoint-bucket", "clocks", "event-stream", "failure-scan", "fence"],
  ...["fleet-trouble", "releases", "smoke"],
].map(endToEnd);
/** The same of leaders that end, and of the stores that they leave. */
const WAITING_FOR_LEADERS = [
  ...["actors-takeover", "coordinator-restart", "keys-takeover", "leader-change", "postgres", "postgres-*"],
  ...["split-brain", "stalled-disk", "storage-*", "takeover", "three-coordinators", "unreachable"],
].map(endToEnd);
/** `rollout run`, and runs that are gone on with from a copy or by another version: their items take their time, and so do their processes to start. */
const LOCAL_RUNS = ["backup", "run", "run-*", "upgrade"].map(endToEnd);
/** A real Postgres, with troubles that take their time: what a test waits for there is mostly the server. */
const POSTGRES = "test/contract/postgres-*.test.ts";

/** Hosts by ssh: they want an sshd, which the extras bring, and mostly wait for logins. */
const HOSTS = "test/contract/ssh-*.test.ts";

/** Workers and what executes their items: most of that is waiting for the processes of others. */
const WORKERS = ["test/unit/worker/**/*.test.ts", "test/contract/*-backend.test.ts"];

function ignoring(files: readonly string[]): string[] {
  return files.flatMap((each) => ["--ignore", each]);
}

// Tests stand in several runs of about the same length, none of which is the last to end by far: what takes a minute more in one of them is better
// put elsewhere. `npm run test:slowest` says what each has cost.
export const CHECKS: readonly Check[] = [
  { name: "extras", kind: "setup", command: ["node", "scripts/setup-extras.ts"], limitMs: STATIC_LIMIT_MS },
  ...STATIC,
  // Real processes with real deadlines: not while compilers hold both cores. The longest first.
  afterStatic(
    tests(
      "e2e",
      PROCESSES_TEST_LIMIT_MS,
      ...ignoring([...WAITING, ...WAITING_FOR_LEADERS, ...LOCAL_RUNS]),
      "test/e2e/**/*.test.ts",
    ),
  ),
  {
    ...afterStatic(tests("e2e-leaders", PROCESSES_TEST_LIMIT_MS, ...WAITING_FOR_LEADERS)),
    mostlyWaits: true,
  },
  { ...afterStatic(tests("e2e-deadlines", PROCESSES_TEST_LIMIT_MS, ...WAITING, HOSTS)), mostlyWaits: true },
  { ...tests("postgres", UNIT_TEST_LIMIT_MS, POSTGRES), mostlyWaits: true },
  // In the place of the one before it: more side by side would be no quicker.
  {
    ...afterStatic(tests("e2e-runs", PROCESSES_TEST_LIMIT_MS, ...LOCAL_RUNS), "postgres"),
    mostlyWaits: true,
  },
  { ...tests("unit-workers", UNIT_TEST_LIMIT_MS, ...WORKERS), after: ["postgres"], mostlyWaits: true },
  tests(
    "unit",
    UNIT_TEST_LIMIT_MS,
    ...ignoring(["test/{e2e,canaries}/**", POSTGRES, HOSTS, ...WORKERS]),
    "test/**/*.test.ts",
  ),
  tests("canaries", PROCESSES_TEST_LIMIT_MS, "test/canaries/**/*.test.ts"),
];
