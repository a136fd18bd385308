// Names of processes that open a database, as they stand in what others are told of it. Keeps true: a process of a local run, which leaves
// with it, has another name than the same one that somebody has started by hand and has to end.
export const BY_HAND = { coordinator: "rollout coordinator run", worker: "rollout worker run" } as const;

const OF_LOCAL_RUN = {
  coordinator: "the coordinator of rollout run",
  worker: "a worker of rollout run",
} as const;

/** `isOfLocalRun`: by the hidden flag with which a local run starts its processes. */
export function holderNameOf(who: keyof typeof BY_HAND, isOfLocalRun: boolean): string {
  return (isOfLocalRun ? OF_LOCAL_RUN : BY_HAND)[who];
}

/** Whether nothing ends it but the person who has started it. */
export function isByHand(holderName: string): boolean {
  return Object.values<string>(BY_HAND).includes(holderName);
}
