// A statechart as a Mermaid state diagram: what the documents show, and what `machines export` writes for whoever has no
// inspector at hand. Drawn from the chart itself, so a picture is never older than the program.
import type { AnyStateMachine, AnyStateNode } from "xstate";

/** Ends with a line ending. */
export function chartDiagram(machine: AnyStateMachine): string {
  return ["stateDiagram-v2", ...bodyOf(machine.root, "  "), ""].join("\n");
}

function bodyOf(node: AnyStateNode, indent: string): string[] {
  const children = Object.values(node.states);
  if (node.type === "parallel") {
    // Mermaid draws regions of a composite state, with a bar between them.
    const regions = children.map((child) => regionOf(child, indent));
    return regions.flatMap((region, at) => (at === 0 ? region : [`${indent}--`, ...region]));
  }
  return regionOf(node, indent);
}

function regionOf(node: AnyStateNode, indent: string): string[] {
  const [first] = node.type === "compound" ? node.initial.target : [];
  const begin = first === undefined ? [] : [`${indent}[*] --> ${nameOf(first)}`];
  const children = Object.values(node.states);
  return [...begin, ...children.flatMap((child) => stateOf(child, indent)), ...arrowsOf(node, indent)];
}

function stateOf(node: AnyStateNode, indent: string): string[] {
  const end = node.type === "final" ? [`${indent}${nameOf(node)} --> [*]`] : [];
  if (Object.keys(node.states).length === 0)
    return [`${indent}${nameOf(node)}`, ...arrowsOf(node, indent), ...end];
  const inner = bodyOf(node, `${indent}  `);
  return [`${indent}state ${nameOf(node)} {`, ...inner, `${indent}}`, ...end];
}

function arrowsOf(node: AnyStateNode, indent: string): string[] {
  // An event that the chart as a whole takes is taken in each of its states: there is no box around it to draw the arrow from.
  const sources = node.parent === undefined ? Object.values(node.states) : [node];
  return [...node.transitions.values()].flat().flatMap((transition) => {
    const guard = transition.guard === undefined ? "" : ` [${referenceName(transition.guard)}]`;
    const label = `${transition.eventType}${guard}`;
    return sources.flatMap((source) =>
      (transition.target ?? [source]).map(
        (target) => `${indent}${nameOf(source)} --> ${nameOf(target)}: ${label}`,
      ),
    );
  });
}

/** Unique in the diagram: two regions may use one word for a state each. */
function nameOf(node: AnyStateNode): string {
  return node.path.join("_").replace(/\W/g, "_") || node.key.replace(/\W/g, "_");
}

function referenceName(reference: unknown): string {
  if (typeof reference === "string") return reference;
  return typeof reference === "object" && reference !== null && "type" in reference
    ? String(reference.type)
    : "inline";
}
