// Tests that mostly wait, side by side. Their bodies start together, as many at a time as is said, and each outcome is
// reported by a test of its own.

/** A function like `it`. */
export type ConcurrentTest = (title: string, body: () => Promise<void>) => void;

/**
 * To be called in a `describe`, whose tests must not share anything. When mocha is told to run one of them, the others run
 * beside it all the same.
 */
export function concurrentTests(atOnce: number): ConcurrentTest {
  const waiting: (() => Promise<void>)[] = [];
  let done: Promise<unknown> = Promise.resolve();
  before(() => {
    const workThrough = async (): Promise<void> => {
      for (let run = waiting.shift(); run !== undefined; run = waiting.shift()) await run();
    };
    done = Promise.all(Array.from({ length: atOnce }, workThrough));
  });
  after(() => done);
  return (title, body) => {
    const { promise: outcome, resolve, reject } = Promise.withResolvers();
    // Its test may come much later than its end.
    outcome.catch(() => undefined);
    waiting.push(() => body().then(resolve, reject));
    it(title, () => outcome);
  };
}
