// The door of the server of the page: it lets in callers that know the token, by a name of this machine with this port, and no page but our own.
//
// Keeps true: a token is compared in the same time whatever is wrong with it; a refusal says nothing but its reason.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Random } from "../base/random.ts";
import { isOfThisMachine } from "../observe/loopback-server.ts";

export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly hint: string;
}

const TOKEN_BYTES = 16;
const BEARER = /^Bearer ([\w-]{1,200})$/;

/** 128 bits, as letters for an address. */
export function newToken(random: Random): string {
  return Buffer.from(random.bytes(TOKEN_BYTES)).toString("base64url");
}

export class Entrance {
  readonly #digest: Buffer;

  constructor(token: string) {
    this.#digest = digestOf(token);
  }

  isToken(text: string): boolean {
    return timingSafeEqual(digestOf(text), this.#digest);
  }

  /** Why nobody is let in who calls like that, at this port; undefined when he is, as far as he wants nothing that is ours alone. */
  refusal({ host = "", origin }: IncomingHttpHeaders, port: number | undefined): Refusal | undefined {
    if (!isOfThisMachine(host) || portOf(host) !== port)
      return {
        ...{ status: 421, message: "the page is not served under this name" },
        hint: "open it by the address that the command has printed; a tunnel needs the same port at both ends",
      };
    if (origin !== undefined && origin !== `http://${host}`)
      return {
        ...{ status: 403, message: "another page may not ask this" },
        hint: "open the address that the command has printed",
      };
    return undefined;
  }

  /** Why a caller without the token is told nothing; undefined when he has it. */
  tokenRefusal({ authorization = "" }: IncomingHttpHeaders): Refusal | undefined {
    if (this.isToken(BEARER.exec(authorization)?.[1] ?? "")) return undefined;
    return {
      ...{ status: 401, message: "the token is missing, or is another one" },
      hint: "each start of the program makes a token: open the address that it has printed",
    };
  }
}

function portOf(host: string): number | undefined {
  const port = /:(\d{1,5})$/.exec(host)?.[1];
  return port === undefined ? 80 : Number(port);
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
