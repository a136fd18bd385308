// An async iterable whose failures are turned into others. Plain promises instead of a generator: it stands in the path of
// every message of a stream.

/** The same messages; whatever the iteration throws goes through `translate` first. */
export function redirect<Message>(
  source: AsyncIterable<Message>,
  translate: (thrown: unknown) => Error | Promise<Error>,
): AsyncIterable<Message> {
  const rethrow = async (thrown: unknown): Promise<never> => {
    throw await translate(thrown);
  };
  return {
    [Symbol.asyncIterator](): AsyncIterator<Message> {
      const inner = source[Symbol.asyncIterator]();
      return {
        next: () => inner.next().catch(rethrow),
        return: (value?: unknown) =>
          inner.return?.(value).catch(rethrow) ?? Promise.resolve({ done: true, value: undefined }),
        throw: (thrown?: unknown) => inner.throw?.(thrown).catch(rethrow) ?? rethrow(thrown),
      };
    },
  };
}
