// Keys with all that is theirs on their way between runs: a line of JSON for each, which only programs read.
import { fromJson, toJson } from "@bufbuild/protobuf";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import { isJsonObject, jsonFields } from "../base/exact-json.ts";
import type { Task } from "../config/task.ts";
import type { KeyService, MovedKey } from "../gen/rollout/v1/keys_pb.ts";
import { MovedKeySchema } from "../gen/rollout/v1/keys_pb.ts";

type Calls = Client<typeof KeyService>;

/** Stands in each line, and grows when a line means something else. */
const FORMAT = 1;
const MARK = "rollout_key";
const BATCH_KEYS = 100;
const BATCH_BYTES = 4 * 1024 * 1024;

export interface Unmovable {
  readonly key: string;
  /** `running`, `failed` or `too_large`. */
  readonly why: string;
}

/** A line for each key, or why there is none. Throws the transport's rows. */
export async function* exportKeys(calls: Calls, prefix: string): AsyncGenerator<string | Unmovable> {
  const named = new Set<string>();
  let after = "";
  do {
    const page = await calls.exportKeys({ prefix, after });
    for (const key of page.keys) yield lineOf(key);
    for (const { key, why } of page.unmovable)
      if (!named.has(key)) {
        named.add(key);
        yield { key, why };
      }
    after = page.after;
  } while (after !== "");
}

function lineOf(key: MovedKey): string {
  return JSON.stringify({ [MARK]: FORMAT, ...(toJson(MovedKeySchema, key) as object) });
}

export interface Imported {
  readonly taken: number;
  readonly known: number;
  /** Keys that the run has for another reason. */
  readonly there: readonly string[];
}

/** May be repeated as a whole. Throws input_unreadable with the line that is none, and the transport's rows; what was taken by then stays. */
export async function importKeys(
  calls: Calls,
  lines: AsyncIterable<string>,
  { file, task }: { readonly file: string; readonly task: Task },
): Promise<Imported> {
  const about = { taskDigest: task.digest, plugin: task.plugin, taskSummary: task.summary };
  let total: Imported = { taken: 0, known: 0, there: [] };
  let [batch, bytes, number]: [MovedKey[], number, number] = [[], 0, 0];
  const send = async (): Promise<void> => {
    const { taken, known, there } = await calls.importKeys({ keys: batch, ...about });
    total = { taken: total.taken + taken, known: total.known + known, there: [...total.there, ...there] };
    [batch, bytes] = [[], 0];
  };
  for await (const line of lines) {
    number++;
    if (line.trim() === "") continue;
    if (batch.length >= BATCH_KEYS || (batch.length > 0 && bytes + line.length > BATCH_BYTES)) await send();
    batch.push(keyOf(line, file, number));
    bytes += line.length;
  }
  if (batch.length > 0) await send();
  return total;
}

function keyOf(line: string, file: string, number: number): MovedKey {
  const refuse = (reason: string): Error =>
    failure("input_unreadable", { file, reason: `line ${number}: ${reason}` });
  const fields = jsonFields(line);
  const { [MARK]: format, ...key } = fields;
  if (!isJsonObject(fields) || format !== FORMAT)
    throw refuse("it is no key that `rollout key export` has written, or of another version of rollout");
  try {
    return fromJson(MovedKeySchema, key as JsonValue, { ignoreUnknownFields: true });
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : "it is no key");
  }
}
