// The credentials for a bucket: of a file in the format of `~/.aws/credentials`, or of the environment variables that all such programs
// read. They are in no message.
import { readFile } from "node:fs/promises";
import { systemReason } from "../../base/system-reason.ts";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** Undefined when it names none. */
function credentialsOf(
  values: Readonly<Record<string, string | undefined>>,
  nameOf: (name: string) => string,
): S3Credentials | undefined {
  const [accessKeyId = "", secretAccessKey = "", sessionToken = ""] = [
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
  ].map((name) => values[nameOf(name)]);
  if (accessKeyId === "" || secretAccessKey === "") return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken !== "" && { sessionToken }) };
}

/** Rejects, saying what is missing, and nothing of what is there. */
export async function readCredentials(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<S3Credentials> {
  if (file === undefined) {
    const found = credentialsOf(environment, (name) => name.toUpperCase());
    if (found !== undefined) return found;
    throw new Error(
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, nor keys.checkpoint_credentials",
    );
  }
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new Error(`${file} cannot be read: ${systemReason(error)}`, { cause: error });
  });
  const found = credentialsOf(profileIn(text, "default"), (name) => name);
  if (found === undefined) throw new Error(`${file} has no key in its profile default`);
  return found;
}

function profileIn(text: string, profile: string): Record<string, string> {
  const values: Record<string, string> = {};
  let isIn = false;
  for (const line of text.split(/\r?\n/u)) {
    const section = /^\s*\[\s*(?<name>[^\]]*?)\s*\]\s*$/u.exec(line)?.[1];
    if (section !== undefined) isIn = section === profile;
    const [, name, value] = /^\s*(?<name>[A-Za-z_]+)\s*=\s*(?<value>.*?)\s*$/u.exec(line) ?? [];
    if (isIn && name !== undefined && value !== undefined) values[name.toLowerCase()] = value;
  }
  return values;
}
