// Resources that a test opened, closed after it in the opposite order.

/** To be called in a `describe`: gives the function that takes a closer. */
export function useClosers(): (close: () => unknown) => void {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  return (close) => void closers.push(close);
}
