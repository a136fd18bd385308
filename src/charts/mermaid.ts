// A chart as a Mermaid state diagram: text that documents can hold and many viewers draw.
import { childrenOf, rootOf, transitionLabel } from "./model.ts";
import type { ChartModel, ChartState } from "./model.ts";

/** Ends with a line ending. `lit`: ids of states that are lit. */
export function chartMermaid(model: ChartModel, lit: ReadonlySet<string> = new Set()): string {
  const writer = new MermaidWriter(model);
  return ["stateDiagram-v2", ...writer.body(rootOf(model), "  "), ...writer.lit(lit), ""].join("\n");
}

const LIT_STYLE = "fill:#dcf1ff,stroke:#0b69a3,color:#1f2933,stroke-width:2px";

/** Words of the language, which no state can be called by. */
const RESERVED = /^(?:class|classDef|default|direction|end|note|scale|state|style|as|click|href)$/i;

class MermaidWriter {
  readonly #model: ChartModel;
  readonly #children: ReturnType<typeof childrenOf>;
  readonly #names = new Map<string, string>();

  constructor(model: ChartModel) {
    this.#model = model;
    this.#children = childrenOf(model);
    const taken = new Set<string>();
    for (const { id, path, parent } of model.states) {
      if (parent === null) continue;
      const plain = path.replaceAll(/\W/g, "_");
      const base = RESERVED.test(plain) ? `${plain}_` : plain;
      let name = base;
      for (let count = 2; taken.has(name); count++) name = `${base}_${count}`;
      taken.add(name);
      this.#names.set(id, name);
    }
  }

  lit(ids: ReadonlySet<string>): string[] {
    if (ids.size === 0) return [];
    const names = [...ids].map((id) => this.#name(id)).join(",");
    return [`  classDef lit ${LIT_STYLE}`, `  class ${names} lit`];
  }

  body(state: ChartState, indent: string): string[] {
    if (state.kind !== "parallel") return this.#region(state, indent);
    // Mermaid draws regions of a composite state, with a bar between them.
    const regions = this.#childrenOf(state).map((child) => [...this.#state(child, indent)]);
    const bars = regions.flatMap((region, at) => (at === 0 ? region : [`${indent}--`, ...region]));
    return state.parent === null ? [...bars, ...this.#arrows(state, indent)] : bars;
  }

  #region(state: ChartState, indent: string): string[] {
    const { initial, parent } = state;
    return [
      ...(initial === null ? [] : [`${indent}[*] --> ${this.#name(initial)}`]),
      ...this.#childrenOf(state).flatMap((child) => this.#state(child, indent)),
      ...(parent === null ? this.#arrows(state, indent) : []),
    ];
  }

  #state(state: ChartState, indent: string): string[] {
    const { id, key, kind, history, initial } = state;
    const name = this.#name(id);
    const title = history === null ? key : `${key} (history)`;
    const named = name === title ? name : `state "${escaped(title)}" as ${name}`;
    const isGroup = this.#childrenOf(state).length > 0;
    const lines = isGroup
      ? [
          `${indent}${name === title ? `state ${name}` : named} {`,
          ...this.body(state, `${indent}  `),
          `${indent}}`,
        ]
      : [`${indent}${named}`];
    return [
      ...lines,
      ...this.#arrows(state, indent),
      ...(kind === "history" && initial !== null ? [`${indent}${name} --> ${this.#name(initial)}`] : []),
      ...(kind === "final" ? [`${indent}${name} --> [*]`] : []),
    ];
  }

  #arrows({ id, parent }: ChartState, indent: string): string[] {
    // An event that the chart as a whole takes is taken in each of its states: there is no box around it to draw the arrow from.
    const sources = parent === null ? (this.#children.get(id) ?? []).map((child) => child.id) : [id];
    return this.#model.transitions
      .filter(({ source }) => source === id)
      .flatMap((transition) =>
        sources.flatMap((source) =>
          (transition.targets.length === 0 ? [source] : transition.targets).map(
            (target) =>
              `${indent}${this.#name(source)} --> ${this.#name(target)}: ${escaped(transitionLabel(transition))}`,
          ),
        ),
      );
  }

  #childrenOf({ id }: ChartState): readonly ChartState[] {
    return this.#children.get(id) ?? [];
  }

  #name(id: string): string {
    return this.#names.get(id) ?? "unknown";
  }
}

/** Mermaid reads `#60;` as the character of that number; all that could mean something to it, or to HTML, is written so. */
function escaped(text: string): string {
  return text.replace(/[^\w .,()[\]/+*-]|--/gu, (found) =>
    Array.from(found, (character) => `#${character.codePointAt(0) ?? 0};`).join(""),
  );
}
