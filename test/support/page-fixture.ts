// The real server of the page, with news that a test has made up: told more, broken and taken up again at the same port.
import { builtChart, pageFile } from "../../src/inspector/page-files.ts";
import type { Deed, Explained, Hello, PageNews } from "../../src/inspector/page-messages.ts";
import type { Operator } from "../../src/inspector/page-server.ts";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { startPageRig, TOKEN } from "./page-rig.ts";

const FOLDER = repositoryFile("dist/page");

export interface PageFixtureOptions {
  /** All that a page is told when it comes, `hello` first. */
  readonly whole: () => readonly PageNews[];
  readonly explain?: (name: string) => Explained | undefined;
  /** The words of the answer; rejects with a row of the table of errors. */
  readonly perform?: (deed: Deed) => Promise<string>;
}

export class PageFixture {
  readonly deeds: Deed[] = [];
  /** How often a first page came. */
  followed = 0;
  readonly #options: PageFixtureOptions;
  #told: ((news: PageNews) => void) | undefined;
  #port = 0;
  #close: (() => Promise<void>) | undefined;

  static async start(options: PageFixtureOptions): Promise<PageFixture> {
    const fixture = new PageFixture(options);
    await fixture.listen();
    return fixture;
  }

  private constructor(options: PageFixtureOptions) {
    this.#options = options;
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}/?token=${TOKEN}`;
  }

  /** Also after a stop, at the same port. */
  async listen(): Promise<void> {
    const { whole } = this.#options;
    const source = {
      whole: () => whole().slice(1),
      follow: (told: (news: PageNews) => void) => {
        this.followed++;
        this.#told = told;
        return () => (this.#told = undefined);
      },
    };
    const server = await startPageRig(source, {
      ...{
        listenAddr: `127.0.0.1:${this.#port}`,
        operator: this.#operator(),
        hello: () => whole()[0] as Hello,
      },
      file: (name) => pageFile(FOLDER, name),
      chart: (name) => builtChart(FOLDER, name),
      // Charts of the product stand for those of a program.
      definition: (_program, hash) => builtChart(FOLDER, hash),
    });
    this.#port = Number(server.address.split(":").at(-1));
    this.#close = () => server.close();
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    const close = this.#close;
    this.#close = undefined;
    await close?.();
  }

  tell(...news: readonly PageNews[]): void {
    for (const one of news) this.#told?.(one);
  }

  #operator(): Operator {
    const { explain, perform } = this.#options;
    return {
      explainItem: async (name) => explain?.(name),
      explainWorker: async (name) => explain?.(name),
      perform: async (deed) => {
        this.deeds.push(deed);
        return (await perform?.(deed)) ?? "It is done.";
      },
    };
  }
}
