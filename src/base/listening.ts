// A server of ours that begins to listen, and why one could not: in words for a person, with the setting that says where.
import { once } from "node:events";
import type { Server } from "node:net";
import { formatAddress, parseAddress } from "./address.ts";
import { assert } from "./assert.ts";
import { errnoOf, failure } from "./errors.ts";

export interface Listening {
  /** `host:port` as it was wanted, with the port that was taken. */
  readonly address: string;
  readonly port: number;
}

/** `listenAddr` is `host:port`; port 0 takes a free one. `setting` is where the user says it. Fails with listen_failed. */
export async function listenAt(server: Server, listenAddr: string, setting: string): Promise<Listening> {
  const wanted = parseAddress(listenAddr);
  if (wanted === undefined)
    throw failure("listen_failed", { address: listenAddr, reason: "it is not host:port", setting });
  server.listen(wanted.port, wanted.host);
  try {
    await once(server, "listening");
  } catch (error) {
    const reason = reasonOf(errnoOf(error));
    throw failure("listen_failed", { address: formatAddress(wanted), reason, setting }, error);
  }
  const bound = server.address();
  assert(bound !== null && typeof bound === "object", "a TCP server that listens has an address");
  return { address: formatAddress({ host: wanted.host, port: bound.port }), port: bound.port };
}

function reasonOf(code: string | undefined): string {
  switch (code) {
    case "EADDRINUSE":
      return "the address is in use";
    case "EADDRNOTAVAIL":
      return "it is not an address of this machine";
    case "EACCES":
      return "permission denied";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the name is not found";
    default:
      return code ?? "unknown reason";
  }
}
