// NATS JetStream: items are a work queue, taken by one consumer of all workers and acknowledged one by one; a result goes to a stream of
// results, which acknowledges it before its item is.
// Arguments: `producer` or `worker`, where it is installed, the port of the server, how many items.
import { CONCURRENCY, inParallel, installed, payloadOf, produce, resultOf, work } from "./role.ts";

interface Message {
  json(): { readonly n: number };
  ack(): void;
}

interface JetStream {
  publish(subject: string, data: Uint8Array): Promise<unknown>;
  readonly consumers: {
    get(stream: string, name: string): Promise<{ consume(options: object): Promise<AsyncIterable<Message>> }>;
  };
}

interface Manager {
  readonly streams: {
    add(options: object): Promise<unknown>;
    info(stream: string): Promise<{ readonly state: { readonly messages: number } }>;
  };
  readonly consumers: { add(stream: string, options: object): Promise<unknown> };
}

interface Nats {
  readonly connect: (options: object) => Promise<{
    jetstream(options: object): JetStream;
    jetstreamManager(): Promise<Manager>;
  }>;
}

const PUBLISHING_AT_ONCE = 512;
const PATIENCE_MS = 120_000;

const [role, directory = "", port = "0", count = "0"] = process.argv.slice(2);
const { connect } = installed(directory, "nats") as Nats;
const connection = await connect({ servers: `127.0.0.1:${port}` });
const stream = connection.jetstream({ timeout: PATIENCE_MS });
if (role === "producer") {
  const manager = await connection.jetstreamManager();
  await makeStreams(manager);
  await produce(
    () => inParallel(publications(Number(count)), PUBLISHING_AT_ONCE),
    async () => (await manager.streams.info("results")).state.messages,
  );
} else await executeItems();

async function makeStreams({ streams, consumers }: Manager): Promise<void> {
  await streams.add({ name: "items", subjects: ["items.*"], retention: "workqueue", storage: "file" });
  await streams.add({ name: "results", subjects: ["results.*"], storage: "file" });
  const unacknowledged = { max_ack_pending: 8 * CONCURRENCY, ack_wait: PATIENCE_MS * 1e6 };
  await consumers.add("items", { durable_name: "work", ack_policy: "explicit", ...unacknowledged });
}

function* publications(items: number): Generator<() => Promise<unknown>> {
  for (let n = 0; n < items; n++)
    yield () => stream.publish("items.item", Buffer.from(JSON.stringify(payloadOf(n))));
}

async function executeItems(): Promise<void> {
  const consumer = await stream.consumers.get("items", "work");
  const messages = await consumer.consume({ max_messages: 2 * CONCURRENCY });
  const done = work();
  const execute = async (message: Message): Promise<void> => {
    await stream.publish("results.result", Buffer.from(JSON.stringify(resultOf(message.json().n))));
    message.ack();
    done();
  };
  for await (const message of messages) void execute(message);
}
