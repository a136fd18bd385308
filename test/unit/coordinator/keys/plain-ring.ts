// A plain ring to compare the other one with: all points of all members in order, and who follows each partition.
import { hash } from "node:crypto";
import { seededRandom } from "../../../../src/base/random.ts";

export const PARTITIONS = 128;
export const NODES = 128;
const random = seededRandom(1305);
/** Ids of which memberships are drawn. */
const CROWD: readonly string[] = Array.from({ length: 64 }, () =>
  Buffer.from(random.bytes(16)).toString("hex"),
);

interface Point<Named> {
  readonly name: Named;
  readonly point: bigint;
}

function pointOf<Named>(name: Named, text: string): Point<Named> {
  return { name, point: hash("sha256", text, "buffer").readBigUInt64BE(0) };
}

function inOrder<Named>(points: Point<Named>[]): Point<Named>[] {
  return points.sort((one, other) => (one.point < other.point ? -1 : 1));
}

const NODES_OF_ALL = inOrder(
  CROWD.flatMap((id) => Array.from({ length: NODES }, (_, at) => pointOf(id, `${id}-vnode-${at}`))),
);
const POINTS = inOrder(Array.from({ length: PARTITIONS }, (_, at) => pointOf(at, `partition-${at}`)));

export function plainOwners(members: readonly string[]): (string | undefined)[] {
  const those = new Set(members);
  const nodes = NODES_OF_ALL.filter(({ name }) => those.has(name));
  const owners: (string | undefined)[] = [];
  let at = 0;
  for (const { name: partition, point } of POINTS) {
    while (at < nodes.length && (nodes[at]?.point ?? 0n) < point) at++;
    owners[partition] = (nodes[at] ?? nodes[0])?.name;
  }
  return owners;
}

/** Members in the order in which they follow a partition, its owner first. */
export function plainSuccessors(members: readonly string[], partition: number): string[] {
  const those = new Set(members);
  const nodes = NODES_OF_ALL.filter(({ name }) => those.has(name));
  const from = POINTS.find(({ name }) => name === partition)?.point ?? 0n;
  const at = nodes.findIndex(({ point }) => point >= from);
  const around = at === -1 ? nodes : [...nodes.slice(at), ...nodes.slice(0, at)];
  return [...new Set(around.map(({ name }) => name))];
}

/** So many different ids of the crowd. */
export function draw(count: number): string[] {
  const left = [...CROWD];
  return Array.from({ length: count }, () => left.splice(Math.floor(random.unit() * left.length), 1).join());
}
