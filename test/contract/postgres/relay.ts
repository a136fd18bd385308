// One connection through the proxy: statements on their way to the server, one after the other, each with its fate.
import type { Socket } from "node:net";
import { isEncryptionRequest, queryMessage, textsOf, warningMessage, WireReader } from "./wire.ts";
import type { WireMessage } from "./wire.ts";

/** Everything up to one answer of the server. */
export interface Statement {
  readonly text: string;
  /** Whether its success makes something durable: a COMMIT, or a write outside of a transaction. */
  readonly commits: boolean;
}

export type Fate =
  | { readonly kind: "pass" }
  /** The server receives it when the promise resolves. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> }
  /** The connection breaks. */
  | {
      readonly kind: "cut";
      readonly at: CutPoint;
      readonly how?: CutForm;
      readonly until?: Promise<unknown>;
    }
  /** The server fails it with this SQLSTATE; nothing of it takes effect. */
  | { readonly kind: "fail"; readonly code: string }
  /** The server adds a warning with this SQLSTATE to its answer. */
  | { readonly kind: "warn"; readonly code: string };

/**
 * `before`: nothing of it reaches the server. `request`: half of it does. `late`: all of it does, but only when the promise resolves.
 * `during`: all of it does, and the client is cut off before the server has carried it out. `answer`: the client hears all but the
 * last message, with which a commit of the extended form is over. `after`: nothing.
 */
export type CutPoint = "before" | "request" | "late" | "during" | "answer" | "after";

/** With a last word of the system, or without one. */
export type CutForm = "end" | "reset";

export type FateOf = (statement: Statement) => Fate | undefined;

const WRITE = /\b(?:INSERT\s+INTO|DELETE\s+FROM|UPDATE\s+\S+\s+SET)\b/i;
type Cut = Extract<Fate, { kind: "cut" }>;

const PASS: Fate = { kind: "pass" };

/** A statement that the server has, and its answer so far. */
interface Sent {
  readonly fate: Fate;
  /** Answers that come in place of one: all but the error and the last readiness are kept from the client. */
  readonly replaced: boolean;
  answers: number;
}

export class Relay {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #fateOf: FateOf;
  readonly #fromClient = new WireReader(false);
  #fromServer: WireReader | undefined;
  readonly #prepared = new Map<string, string>();
  /** The statement that is not whole yet. */
  #bytes: Buffer[] = [];
  #texts: string[] = [];
  #inTransaction = false;
  readonly #sent: Sent[] = [];
  #isCut = false;
  /** Something is to reach the server although the client has gone. */
  #isLate = false;
  /** Statements that wait for one that is held. */
  #order: Promise<void> = Promise.resolve();

  constructor(client: Socket, server: Socket, fateOf: FateOf) {
    this.#client = client;
    this.#server = server;
    this.#fateOf = fateOf;
    client.on("data", (chunk) => {
      for (const message of this.#fromClient.read(chunk)) this.#takeRequest(message);
    });
    server.on("data", (chunk) => this.#takeAnswers(chunk));
    // An error is followed by a close. The server hears an end behind all that was sent to it.
    client.on("error", () => undefined).on("close", () => !this.#isLate && server.end());
    server.on("error", () => undefined).on("close", () => client.end());
  }

  #takeRequest(message: WireMessage): void {
    if (isEncryptionRequest(message)) return void this.#client.write("N");
    if (message.type === "" || message.type === "p" || message.type === "X")
      return void (this.#order = this.#order.then(() => void this.#server.write(message.bytes)));
    this.#bytes.push(message.bytes);
    if (message.type === "P") {
      const [name = "", text = ""] = textsOf(message, 2);
      this.#prepared.set(name, text);
    }
    if (message.type === "B") this.#texts.push(this.#prepared.get(textsOf(message, 2)[1] ?? "") ?? "");
    if (message.type === "Q") this.#texts.push(...textsOf(message, 1));
    if (message.type !== "Q" && message.type !== "S") return;
    const [bytes, text] = [Buffer.concat(this.#bytes), this.#texts.join(";")];
    [this.#bytes, this.#texts] = [[], []];
    this.#order = this.#order.then(() => this.#carry(text, bytes));
  }

  async #carry(text: string, bytes: Buffer): Promise<void> {
    if (this.#isCut) return;
    const isEnd = /^\s*COMMIT\b/i.test(text);
    const fate =
      this.#fateOf({
        text,
        commits: isEnd || (!this.#inTransaction && WRITE.test(text)),
      }) ?? PASS;
    if (fate.kind === "hold") await fate.until;
    if (/^\s*BEGIN\b/i.test(text)) this.#inTransaction = true;
    if (isEnd || /^\s*ROLLBACK\b/i.test(text)) this.#inTransaction = false;
    if (fate.kind === "fail") return this.#fail(fate, isEnd);
    if (fate.kind === "cut" && fate.at !== "answer" && fate.at !== "after") return this.#cutOff(fate, bytes);
    this.#sent.push({ fate, replaced: false, answers: 1 });
    this.#server.write(bytes);
  }

  #cutOff(fate: Cut, bytes: Buffer): void {
    const { at, until } = fate;
    this.#isLate = at === "late";
    this.#breakClient(fate);
    if (this.#isLate) void until?.then(() => this.#server.end(bytes));
    else if (at === "before") this.#server.end();
    else this.#server.end(at === "during" ? bytes : bytes.subarray(0, bytes.length >> 1));
  }

  /** The server itself fails, so that it stands where it would; a transaction whose COMMIT fails is over. */
  #fail(fate: Extract<Fate, { kind: "fail" }>, isEnd: boolean): void {
    this.#sent.push({ fate, replaced: true, answers: isEnd ? 2 : 1 });
    this.#server.write(
      queryMessage(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${fate.code}', MESSAGE = 'made up'; END $$`),
    );
    if (isEnd) this.#server.write(queryMessage("ROLLBACK"));
  }

  #takeAnswers(chunk: Buffer): void {
    this.#fromServer ??= new WireReader(true);
    for (const message of this.#fromServer.read(chunk)) this.#takeAnswer(message);
  }

  #takeAnswer({ type, bytes }: WireMessage): void {
    if (this.#isCut) return;
    const [sent] = this.#sent;
    if (sent === undefined) return void this.#client.write(bytes);
    const isLast = type === "Z" && --sent.answers === 0;
    if (isLast) {
      this.#sent.shift();
      if (this.#sent.length === 0) this.#inTransaction = bytes.toString("latin1", 5) !== "I";
    }
    const { fate, replaced } = sent;
    if (fate.kind === "cut") {
      if (isLast) this.#breakClient(fate);
      else if (fate.at === "answer") this.#client.write(bytes);
      return;
    }
    if (fate.kind === "warn" && type === "C") this.#client.write(warningMessage(fate.code, "made up"));
    if (!replaced || type === "E" || isLast) this.#client.write(bytes);
  }

  #breakClient({ how = "end" }: Cut): void {
    if (how === "reset") this.#client.resetAndDestroy();
    else this.#client.destroySoon();
    this.#isCut = true;
  }
}
