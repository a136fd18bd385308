// Messages of Postgres's protocol 3: cut out of a stream, and made. A message is a letter, the length of the rest, the rest; the
// first of a client has no letter.

export interface WireMessage {
  /** Empty for the first messages of a client. */
  readonly type: string;
  /** The whole of it, letter and length included. */
  readonly bytes: Buffer;
}

/** Cuts one direction of a connection into messages. */
export class WireReader {
  #chunks: Buffer[] = [];
  #length = 0;
  #hasLetters: boolean;

  constructor(hasLetters: boolean) {
    this.#hasLetters = hasLetters;
  }

  /** The messages that are whole now. */
  read(chunk: Buffer): WireMessage[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: WireMessage[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) messages.push(next);
    return messages;
  }

  #next(): WireMessage | undefined {
    const letters = this.#hasLetters ? 1 : 0;
    const head = this.#first(letters + 4);
    const bytes = head && this.#first(letters + head.readUInt32BE(letters));
    if (bytes === undefined) return undefined;
    const rest = this.#chunks[0]?.subarray(bytes.length);
    if (rest?.length === 0) this.#chunks.shift();
    else if (rest !== undefined) this.#chunks[0] = rest;
    this.#length -= bytes.length;
    const type = this.#hasLetters ? bytes.toString("latin1", 0, 1) : "";
    // A request to encrypt is answered with "no", and the real first message follows.
    if (!this.#hasLetters) this.#hasLetters = bytes.readUInt32BE(4) !== ENCRYPTION_REQUEST;
    return { type, bytes };
  }

  /** So many bytes when there are as many. Chunks are joined only then: a large message comes in hundreds. */
  #first(count: number): Buffer | undefined {
    if (this.#length < count) return undefined;
    const [first = Buffer.alloc(0)] = this.#chunks;
    if (first.length < count) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]?.subarray(0, count);
  }
}

const ENCRYPTION_REQUEST = 80_877_103;

export function isEncryptionRequest({ type, bytes }: WireMessage): boolean {
  return type === "" && bytes.readUInt32BE(4) === ENCRYPTION_REQUEST;
}

/** The strings, each ended by a zero byte, at the start of a message's body. */
export function textsOf({ bytes }: WireMessage, count: number): string[] {
  const texts: string[] = [];
  for (let at = 5; texts.length < count;) {
    const end = bytes.indexOf(0, at);
    texts.push(bytes.toString("utf8", at, end));
    at = end + 1;
  }
  return texts;
}

export function messageOf(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

/** A statement in the simple form. */
export function queryMessage(text: string): Buffer {
  return messageOf("Q", Buffer.from(`${text}\0`));
}

/** A warning in the way of the server. */
export function warningMessage(code: string, text: string): Buffer {
  return messageOf("N", Buffer.from(`SWARNING\0VWARNING\0C${code}\0M${text}\0\0`));
}
