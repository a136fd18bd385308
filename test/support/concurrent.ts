// Tests that mostly wait, side by side. Their bodies start together, as many at a time as is said, and each outcome is
// reported by a test of its own.

/** A function like `it`. */
export type ConcurrentTest = (title: string, body: () => Promise<void>) => void;

interface WaitingTest {
  readonly title: string;
  readonly run: () => Promise<void>;
}

/** To be called in a `describe`, whose tests must not share anything. */
export function concurrentTests(atOnce: number): ConcurrentTest {
  const all: WaitingTest[] = [];
  let done: Promise<unknown> = Promise.resolve();
  before(function () {
    const suite = this.test?.parent?.fullTitle() ?? "";
    const pattern = patternAskedFor(process.argv);
    const waiting = all.filter(({ title }) => pattern?.test(`${suite} ${title}`) ?? true);
    const workThrough = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await next.run();
    };
    done = Promise.all(Array.from({ length: atOnce }, workThrough));
  });
  after(() => done);
  return (title, body) => {
    const { promise: outcome, resolve, reject } = Promise.withResolvers();
    // Its test may come much later than its end.
    outcome.catch(() => undefined);
    all.push({ title, run: () => body().then(resolve, reject) });
    it(title, () => outcome);
  };
}

/** Titles that mocha was told to run, where that stands in plain words on its command line; else all of them run. */
function patternAskedFor(words: readonly string[]): RegExp | undefined {
  const at = words.findIndex((word) => word === "-g" || word === "--grep");
  const pattern = at === -1 ? undefined : words[at + 1];
  const isOtherwise = words.some((word) => ["-i", "--invert", "-f", "--fgrep"].includes(word));
  return pattern === undefined || isOtherwise || pattern.startsWith("/") ? undefined : new RegExp(pattern);
}
