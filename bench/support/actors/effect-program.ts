// Effect's cluster entities: a runner, or who calls them. State and reply are one transaction in Postgres.
// Arguments: `runner` or `caller`, where its packages are installed, the URL of the database, the port of the runner, how many calls, over how
// many keys, and how many of them at once.
import { systemClock } from "../../../src/base/clock.ts";
import { inParallel, installed } from "../peers/role.ts";

/** An effect, as far as it is used here: something that a generator waits for. */
interface Fx extends Iterable<unknown, unknown, unknown> {
  readonly pipe: (...steps: readonly unknown[]) => Fx;
}
type Made = Generator<unknown, unknown, unknown>;

interface Core {
  readonly Effect: {
    readonly gen: (make: () => Made) => Fx;
    readonly context: () => Fx;
    readonly promise: (make: () => Promise<unknown>) => Fx;
    readonly provide: (layer: Fx) => unknown;
    readonly orDie: unknown;
    readonly runPromiseWith: (context: unknown) => (effect: Fx) => Promise<unknown>;
  };
  readonly Layer: { readonly launch: (layer: Fx) => Fx; readonly provide: (layer: Fx) => unknown };
  readonly Option: { readonly some: (value: unknown) => unknown };
  readonly Redacted: { readonly make: (text: string) => unknown };
  readonly Schema: Readonly<Record<"String" | "Int", unknown>>;
}

interface Message {
  readonly annotate: (key: unknown, value: unknown) => Message;
}

interface Asked {
  readonly id: string;
  readonly by: number;
  readonly pad: string;
}

type Sql = (parts: TemplateStringsArray, ...values: readonly unknown[]) => Fx;

interface EntityOf {
  readonly client: Fx;
  readonly toLayer: (made: Fx, options: object) => Fx;
  readonly of: (handlers: object) => unknown;
}

const PAD = "x".repeat(260);
const WARM_CALLS = 1_000;
const CONNECTIONS = 40;
const SHARDS = 300;
/** More than there are keys, so that none is put out while it is measured. */
const RESIDENT = 20_000;

const [role, directory = "", url = "", port = "0", calls = "0", keys = "1", atOnce = "1"] =
  process.argv.slice(2);
const load = (name: string): never => installed(directory, name) as never;
const { Effect, Layer, Option, Redacted, Schema }: Core = load("effect");
const {
  ClusterSchema,
  Entity,
  RunnerAddress,
}: {
  readonly ClusterSchema: Readonly<Record<"Persisted" | "WithTransaction", unknown>>;
  readonly Entity: {
    readonly make: (name: string, messages: readonly Message[]) => EntityOf;
    readonly CurrentAddress: Fx;
  };
  readonly RunnerAddress: { readonly make: (host: string, at: number) => unknown };
} = load("effect/unstable/cluster");
const { Rpc }: { readonly Rpc: { readonly make: (name: string, shape: object) => Message } } =
  load("effect/unstable/rpc");
const { SqlClient }: { readonly SqlClient: { readonly SqlClient: Fx } } = load("effect/unstable/sql");
const {
  NodeClusterSocket,
  NodeRuntime,
}: {
  readonly NodeClusterSocket: { readonly layer: (options: object) => Fx };
  readonly NodeRuntime: { readonly runMain: (effect: Fx) => void };
} = load("@effect/platform-node");
const { PgClient }: { readonly PgClient: { readonly layer: (options: object) => Fx } } =
  load("@effect/sql-pg");

const add = Rpc.make("Add", {
  payload: { id: Schema.String, by: Schema.Int, pad: Schema.String },
  success: Schema.Int,
  primaryKey: ({ id }: Asked) => id,
})
  .annotate(ClusterSchema.Persisted, true)
  .annotate(ClusterSchema.WithTransaction, true);
const counter = Entity.make("Counter", [add]);
const database = PgClient.layer({ url: Redacted.make(url), maxConnections: CONNECTIONS });
const shardingConfig = { shardsPerGroup: SHARDS, maxResidentEntities: RESIDENT };

if (role === "runner") run();
else call();

function run(): void {
  const handlers = counter.toLayer(
    Effect.gen(function* () {
      const sql = (yield* SqlClient.SqlClient) as Sql;
      const { entityId } = (yield* Entity.CurrentAddress) as { readonly entityId: string };
      return counter.of({
        Add: ({ payload: { by, pad } }: { readonly payload: Asked }) =>
          Effect.gen(function* () {
            const rows = (yield* sql`INSERT INTO counters (k, count, pad) VALUES (${entityId}, ${by}, ${pad})
              ON CONFLICT (k) DO UPDATE SET count = counters.count + ${by} RETURNING count`) as {
              count: number;
            }[];
            return rows[0]?.count;
          }).pipe(Effect.orDie),
      });
    }),
    { maxIdleTime: "10 minutes" },
  );
  const runnerAddress = Option.some(RunnerAddress.make("127.0.0.1", Number(port)));
  const cluster = NodeClusterSocket.layer({
    ...{ storage: "sql", serialization: "binary", shardingConfig: { ...shardingConfig, runnerAddress } },
  });
  NodeRuntime.runMain(Layer.launch(handlers.pipe(Layer.provide(cluster), Layer.provide(database))));
  process.send?.("ready");
}

function call(): void {
  const cluster = NodeClusterSocket.layer({
    ...{ storage: "sql", serialization: "binary", clientOnly: true, shardingConfig },
  });
  const program = Effect.gen(function* () {
    const clientOf = (yield* counter.client) as (key: string) => { readonly Add: (asked: Asked) => Fx };
    const perform = Effect.runPromiseWith(yield* Effect.context());
    let asked = 0;
    const ask = (n: number): Promise<unknown> =>
      perform(clientOf(`k${n % Number(keys)}`).Add({ id: `${process.pid}-${asked++}`, by: 1, pad: PAD }));
    yield* Effect.promise(async () => {
      await inParallel(each(WARM_CALLS, ask), Number(atOnce));
      const fromMs = systemClock.monotonicMs();
      await inParallel(each(Number(calls), ask), Number(atOnce));
      const perSecond = (Number(calls) / (systemClock.monotonicMs() - fromMs)) * 1_000;
      process.send?.({ perSecond }, () => process.exit(0));
    });
    return undefined;
  });
  NodeRuntime.runMain(program.pipe(Effect.provide(cluster), Effect.provide(database)));
}

function* each(count: number, ask: (n: number) => Promise<unknown>): Generator<() => Promise<unknown>> {
  for (let n = 0; n < count; n++) yield () => ask(n);
}
