// The two doors of the server of the page: who has news for pages, and who has charts of programs. A run is one source of news; programs
// that were connected are another.
import type { ChartPicture, PageNews } from "./page-messages.ts";

export interface NewsSource {
  /** All that is known now, for a page that has just come. */
  whole(): readonly PageNews[];
  /** Tells what is new from now on, until the function that it returns is called. Followed by one at a time. */
  follow(told: (news: PageNews) => void): () => void;
}

/** Programs that speak to this one. */
export interface Programs extends NewsSource {
  /** Undefined when there is none. */
  definition(programId: string, hash: string): Promise<ChartPicture | undefined>;
}
