// Talking to the metadata server of EC2 as version 2 of its protocol demands: every question carries a token, which is asked
// for first, lives as long as both sides agreed, and may be refused at any time, as after a stop and start of the machine.
import type { Clock } from "../../base/clock.ts";
import { askMetadata } from "./metadata-http.ts";
import type { MetadataAddress, MetadataAnswer, MetadataQuestion } from "./metadata-http.ts";
import type { MetadataPatience } from "./metadata-trouble.ts";

export interface ImdsOptions {
  readonly address: MetadataAddress;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Says for each request how long it may take, and is told how long it took. */
  readonly patience: MetadataPatience;
  /** For how long a token is asked; 1 to 21,600. */
  readonly tokenTtlSec: number;
}

export type ImdsAnswer =
  | {
      readonly kind: "found";
      readonly body: string;
      /** The server's own time, in milliseconds since 1970 and whole seconds; undefined when it did not say. */
      readonly serverTimeMs: number | undefined;
      /** Monotonic. */
      readonly sentAtMs: number;
    }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly reason: string; readonly isSilent?: boolean };

type Failed = Extract<ImdsAnswer, { readonly kind: "failed" }>;

interface Token {
  readonly kind: "token";
  readonly text: string;
  readonly renewAtMs: number;
}

const TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds";
/** The share of its life after which a token is renewed: the other half is for a server in trouble. */
const RENEW_AFTER = 0.5;
/** A text that may stand in a header. */
const TOKEN_TEXT = /^[\x21-\x7e]+$/;

export class ImdsSession {
  readonly #options: ImdsOptions;
  #token: Token | undefined;

  constructor(options: ImdsOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async get(path: string): Promise<ImdsAnswer> {
    const token = await this.#currentToken();
    if (token.kind === "failed") return token;
    const answer = await this.#ask(path, token);
    if (answer.kind !== "answered" || answer.status !== 401) return read(answer);
    this.#token = undefined;
    const newToken = await this.#currentToken();
    return newToken.kind === "failed" ? newToken : read(await this.#ask(path, newToken));
  }

  /** Whether the server gives tokens, as only that of EC2 does. */
  async isThere(): Promise<boolean> {
    return (await this.#currentToken()).kind === "token";
  }

  async #currentToken(): Promise<Token | Failed> {
    const known = this.#token;
    if (known !== undefined && this.#options.clock.monotonicMs() < known.renewAtMs) return known;
    const answer = await this.#newToken();
    // One that could not be renewed has half of its life before it. If it has not, the server says 401.
    if (answer.kind === "failed") return known ?? answer;
    this.#token = answer;
    return answer;
  }

  async #newToken(): Promise<Token | Failed> {
    const { tokenTtlSec } = this.#options;
    const answer = await this.#request({
      method: "PUT",
      path: "/latest/api/token",
      headers: { [TTL_HEADER]: String(tokenTtlSec), "content-length": "0" },
    });
    if (answer.kind === "unanswered") return failed(answer);
    if (answer.status !== 200)
      return { kind: "failed", reason: `it gives no token, it answers ${answer.status}` };
    if (!TOKEN_TEXT.test(answer.body)) return { kind: "failed", reason: "it gives a token that is none" };
    const grantedSec = Number(answer.header(TTL_HEADER));
    const ttlSec = grantedSec > 0 ? Math.min(grantedSec, tokenTtlSec) : tokenTtlSec;
    return { kind: "token", text: answer.body, renewAtMs: answer.sentAtMs + ttlSec * 1_000 * RENEW_AFTER };
  }

  #ask(path: string, { text }: Token): Promise<MetadataAnswer> {
    return this.#request({ path, headers: { "x-aws-ec2-metadata-token": text } });
  }

  async #request(question: Pick<MetadataQuestion, "method" | "path" | "headers">): Promise<MetadataAnswer> {
    const { patience, clock } = this.#options;
    const startMs = clock.monotonicMs();
    const answer = await askMetadata({ ...this.#options, ...question, timeoutMs: patience.timeoutMs });
    if (answer.kind === "answered") patience.answered(clock.monotonicMs() - startMs);
    else if (answer.isSilent) patience.tooShort();
    return answer;
  }
}

function read(answer: MetadataAnswer): ImdsAnswer {
  if (answer.kind === "unanswered") return failed(answer);
  if (answer.status === 404) return { kind: "absent" };
  if (answer.status !== 200) return { kind: "failed", reason: `it answers ${answer.status}` };
  const serverTimeMs = Date.parse(answer.header("date") ?? "");
  return {
    kind: "found",
    body: answer.body,
    serverTimeMs: Number.isNaN(serverTimeMs) ? undefined : serverTimeMs,
    sentAtMs: answer.sentAtMs,
  };
}

function failed({ reason, isSilent }: Extract<MetadataAnswer, { readonly kind: "unanswered" }>): Failed {
  return { kind: "failed", reason, isSilent };
}
