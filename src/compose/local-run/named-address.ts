// The address that the configuration of a local run names before its coordinator has said where it listens. Keeps true: other commands
// can read that configuration at any time, and they find a coordinator that somebody starts by it.
import { parseAddress } from "../../base/address.ts";
import { RolloutError } from "../../base/errors.ts";
import { findFreePort } from "../../base/free-port.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import { parseConfigText } from "../../config/toml-file.ts";
import type { RunDirectory } from "./run-directory.ts";

const LISTEN_ADDR = "transport.listen_addr";

/** The one that the last coordinator there had; without one, an address at which nothing listens now. */
export async function namedAddress(directory: Pick<RunDirectory, "read">): Promise<string> {
  const text = (await directory.read(CONFIG_FILE_NAME)) ?? "";
  return addressIn(text) ?? `127.0.0.1:${await findFreePort()}`;
}

/** Undefined where the text has none, or one that says any port. A text that cannot be read is written anew by its caller. */
function addressIn(text: string): string | undefined {
  try {
    const settings = parseConfigText(CONFIG_FILE_NAME, text, (name) => LISTEN_ADDR.startsWith(`${name}.`));
    const value = settings.find(({ key }) => key === LISTEN_ADDR)?.value;
    if (typeof value !== "string") return undefined;
    return (parseAddress(value)?.port ?? 0) > 0 ? value : undefined;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return undefined;
  }
}
