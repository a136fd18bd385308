// The ways in which this server can misbehave, as servers do on a bad day, and how a request or an option asks for them.

export type Behaviour =
  /** 429 with a `Retry-After`, which is sent as it stands here: seconds, an HTTP date, or nothing. */
  | { readonly kind: "throttle"; readonly retryAfter?: string }
  /** This status, with `message` in an error object, or with `body` as it is. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly message?: string;
      readonly code?: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The request is read, and nothing ever comes back. */
  | { readonly kind: "stall" }
  /** The right answer, so much later. */
  | { readonly kind: "slow"; readonly delayMs: number }
  /** The connection ends before the answer. */
  | { readonly kind: "cut" }
  /** The connection ends, or the stream stops, in the middle of the answer. */
  | { readonly kind: "truncate" }
  /** 200 with something that is not JSON. */
  | { readonly kind: "garbage" }
  /** Something that is not HTTP. */
  | { readonly kind: "noise" }
  /** 200 with these bytes, in base64. */
  | { readonly kind: "bytes"; readonly base64: string }
  /** 200 with a body of so many bytes. */
  | { readonly kind: "huge"; readonly bytes: number }
  /** A stream that says in its middle that it failed. */
  | { readonly kind: "fail_in_stream"; readonly code: number; readonly message: string }
  /** The server goes away, as by a bug that this request has met. */
  | { readonly kind: "die" };

/** For the first `times` requests only that are the same; all of them unless said. */
export type Asked = Behaviour & { readonly times?: number };

const HEADER = "x-behave";
const FIELD = "behave";

/** The behaviour that the header `x-behave` (JSON) or the field `behave` of the body asks for. */
export function askedOf(header: string | string[] | undefined, body: unknown): Asked | undefined {
  const field: unknown = typeof body === "object" && body !== null && FIELD in body ? body[FIELD] : undefined;
  const asked: unknown = typeof header === "string" ? parse(header) : field;
  const isAsked = typeof asked === "object" && asked !== null && "kind" in asked;
  // This is a toy for tests: who asks for what does not exist gets a plain answer.
  return isAsked ? (asked as Asked) : undefined;
}

/** The name of that header. */
export const BEHAVE_HEADER = HEADER;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
