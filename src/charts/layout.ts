// Places for a picture, found by ELK (docs/adr/0037). It is large, so it is loaded when something is drawn, and never before.
import type { ElkExtendedEdge, ElkNode } from "elkjs/lib/elk-api.js";
import { LINE_HEIGHT, PADDING, TITLE_HEIGHT } from "./picture.ts";
import type { Arrow, Box, Picture } from "./picture.ts";

interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Places by the ids of boxes, starts and arrows; of an arrow its label's, and its way as corners. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Place>;
  readonly labels: ReadonlyMap<string, Place>;
  readonly ways: ReadonlyMap<string, readonly Way[]>;
}

export type Way = readonly (readonly [x: number, y: number])[];

/** The dot at which a state begins. */
export const START_SIZE = 10;

const OPTIONS = {
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.json.shapeCoords": "ROOT",
  "elk.json.edgeCoords": "ROOT",
  "elk.randomSeed": "1",
};
/** For each box: ELK does not hand these down. */
const WITHIN = {
  "elk.direction": "DOWN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.layered.nodePlacement.bk.fixedAlignment": "BALANCED",
  "elk.spacing.nodeNode": "30",
  "elk.spacing.edgeNode": "14",
  "elk.spacing.edgeEdge": "12",
  "elk.spacing.edgeLabel": "3",
  "elk.spacing.nodeSelfLoop": "12",
  "elk.layered.spacing.nodeNodeBetweenLayers": "28",
  "elk.layered.spacing.edgeNodeBetweenLayers": "14",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "12",
};

export async function layOut({ root, arrows }: Picture): Promise<Layout> {
  const { default: elk } = await import("elkjs/lib/elk.bundled.js");
  const leadsOn = forwards(arrows);
  const graph: ElkNode = {
    id: "",
    children: [nodeOf(root)],
    edges: arrows.map((arrow) => edgeOf(arrow, leadsOn(arrow))),
    layoutOptions: { ...OPTIONS, ...WITHIN },
  };
  return placesIn(await new elk.default().layout(graph));
}

function nodeOf(box: Box): ElkNode {
  const { width, height, start, children } = box;
  if (children.length === 0) return { id: box.state.id, width, height };
  const dot = start === null ? [] : [{ id: start.id, width: START_SIZE, height: START_SIZE }];
  const top = TITLE_HEIGHT + box.lines.length * LINE_HEIGHT + 2 * PADDING;
  return {
    id: box.state.id,
    children: [...dot, ...children.map(nodeOf)],
    layoutOptions: {
      ...WITHIN,
      "elk.padding": `[top=${top},left=18,bottom=18,right=18]`,
      "elk.nodeSize.constraints": "MINIMUM_SIZE",
      "elk.nodeSize.minimum": `(${width},${height})`,
    },
  };
}

function edgeOf({ id, source, target, lines, width, height }: Arrow, leadsOn: boolean): ElkExtendedEdge {
  const labels = lines.length === 0 ? [] : [{ id: `label ${id}`, text: "…", width, height }];
  const layoutOptions = { "elk.layered.priority.direction": leadsOn ? "10" : "0" };
  return { id, sources: [source], targets: [target], labels, layoutOptions };
}

/** Whether an arrow leads further away from where the chart begins: it then points downwards where that can be. */
function forwards(arrows: readonly Arrow[]): (arrow: Arrow) => boolean {
  const leaving = Map.groupBy(arrows, ({ source }) => source);
  const steps = new Map<string, number>();
  let reached = arrows.filter(({ lines }) => lines.length === 0).map(({ source }) => source);
  for (let step = 0; reached.length > 0; step++) {
    const next = new Set<string>();
    for (const id of reached) steps.set(id, step);
    for (const id of reached)
      for (const { target } of leaving.get(id) ?? []) if (!steps.has(target)) next.add(target);
    reached = [...next];
  }
  return ({ source, target }) => (steps.get(source) ?? 0) < (steps.get(target) ?? 0);
}

function placesIn(graph: ElkNode): Layout {
  const boxes = new Map<string, Place>();
  const waiting = [...(graph.children ?? [])];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    boxes.set(node.id, placeOf(node));
    waiting.push(...(node.children ?? []));
  }
  const edges = graph.edges ?? [];
  const labels = edges.flatMap(({ id, labels: [label] = [] }) =>
    label === undefined ? [] : [[id, placeOf(label)] as const],
  );
  const ways = edges.map(({ id, sections = [] }) => {
    const found = sections.map(({ startPoint, bendPoints = [], endPoint }) =>
      [startPoint, ...bendPoints, endPoint].map(({ x, y }) => [x, y] as const),
    );
    return [id, found] as const;
  });
  const { width = 0, height = 0 } = graph;
  return { width, height, boxes, labels: new Map(labels), ways: new Map(ways) };
}

function placeOf({ x = 0, y = 0, width = 0, height = 0 }: Partial<Place>): Place {
  return { x, y, width, height };
}
