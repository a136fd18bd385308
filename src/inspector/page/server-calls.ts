// Questions to the program that serves the page, each with the token of the page's address.
import type { ChartPicture, Deed, Done, Explained } from "../page-messages.ts";

/** A question that was not answered as it should be; the message is for a person. */
export class Unanswered extends Error {
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

export class ServerCalls {
  readonly #token: string;
  readonly #pictures = new Map<string, Promise<ChartPicture>>();

  constructor(token: string) {
    this.#token = token;
  }

  get headers(): Readonly<Record<string, string>> {
    return { Authorization: `Bearer ${this.#token}` };
  }

  /** Asked for once: a chart is the same for as long as the page lives. */
  chart(name: string): Promise<ChartPicture> {
    return this.#picture(`/charts/${encodeURIComponent(name)}`);
  }

  definition(programId: string, hash: string): Promise<ChartPicture> {
    return this.#picture(`/definitions/${encodeURIComponent(programId)}/${encodeURIComponent(hash)}`);
  }

  async explainItem(name: string): Promise<Explained> {
    return (await this.#ask(`/item/${encodeURIComponent(name)}`)) as Explained;
  }

  async explainWorker(id: string): Promise<Explained> {
    return (await this.#ask(`/worker/${encodeURIComponent(id)}`)) as Explained;
  }

  /** Also what went wrong is an answer. */
  async perform(deed: Deed): Promise<Done> {
    try {
      const headers = { ...this.headers, "Content-Type": "application/json" };
      const answer = await fetch("/do", { method: "POST", headers, body: JSON.stringify(deed) });
      const done: unknown = await answer.json().catch(() => undefined);
      if (isDone(done)) return done;
      return failed(
        `The server answered ${answer.status}.`,
        "Look at what `rollout inspect` says in its terminal.",
      );
    } catch {
      return failed(
        "No answer from `rollout inspect`.",
        "Whether it was done is not known: look at the state of the run before you try again.",
      );
    }
  }

  /** When its charts may be others. */
  forgetPictures(): void {
    this.#pictures.clear();
  }

  #picture(path: string): Promise<ChartPicture> {
    const known = this.#pictures.get(path);
    if (known !== undefined) return known;
    const asked = this.#ask(path) as Promise<ChartPicture>;
    this.#pictures.set(path, asked);
    asked.catch(() => this.#pictures.delete(path));
    return asked;
  }

  async #ask(path: string): Promise<unknown> {
    const answer = await fetch(path, { headers: this.headers }).catch(() => undefined);
    if (answer === undefined)
      throw new Unanswered("No answer from `rollout inspect`.", "The page tries again by itself.");
    const body: unknown = await answer.json().catch(() => undefined);
    if (isDone(body) && !body.ok) throw new Unanswered(body.error.message, body.error.hint);
    if (!answer.ok || body === undefined) throw new Unanswered(`The server answered ${answer.status}.`, "");
    return body;
  }
}

function failed(message: string, hint: string): Done {
  return { ok: false, error: { message, hint } };
}

function isDone(body: unknown): body is Done {
  return typeof body === "object" && body !== null && "ok" in body && typeof body.ok === "boolean";
}
