// The most that programs of strangers may cost the inspector, all in one place.

export const PROGRAM_LIMITS = {
  /** Connected at once; later ones are turned away. */
  programs: 32,
  /** That have gone and are still shown. */
  gone: 8,
  /** A message that is larger ends its connection: the rest of it cannot be skipped. */
  messageBytes: 8 * 1_024 * 1_024,
  definitionCharacters: 1_024 * 1_024,
  /** Different definitions of a program. */
  definitions: 256,
  definitionsCharacters: 2 * 1_024 * 1_024,
  /** Pictures that are kept, for all programs. */
  picturesCharacters: 16 * 1_024 * 1_024,
  actors: 2_000,
  /** How deep the tree of actors is. */
  actorDepth: 64,
  /** Entries that are remembered of each program. */
  logEntries: 2_000,
  complaints: 20,
  /** Read in a second, of all programs together; each has its share. */
  messagesPerSecond: 20_000,
  bytesPerSecond: 32 * 1_024 * 1_024,
  /** How often pages are told. */
  newsIntervalMs: 250,
  /** How much they are told at a time, of all programs together. */
  newsCharacters: 384 * 1_024,
  /** How much of its log a page is told of each program when it comes. */
  wholeLogCharacters: 256 * 1_024,
} as const;
