// The part of a syntax tree that the house's own lint rules need to see: plain nodes, TypeScript's included.
import type { Rule } from "eslint";

/** A node of the tree. ESLint's own type does not know TypeScript's nodes; this one knows only what every node has. */
export interface SyntaxNode {
  readonly type: string;
  readonly parent?: SyntaxNode;
  readonly [field: string]: unknown;
}

/** A rule whose visitors take plain nodes. */
export function defineRule(
  description: string,
  create: (context: Rule.RuleContext, report: (node: SyntaxNode, message: string) => void) => Visitors,
): Rule.RuleModule {
  return {
    meta: { type: "problem", docs: { description }, schema: [{ type: "object" }] },
    create(context) {
      const report = (node: SyntaxNode, message: string): void =>
        context.report({ node: node as unknown as Rule.Node, message });
      return create(context, report) as unknown as Rule.RuleListener;
    },
  };
}

export type Visitors = Readonly<Record<string, (node: SyntaxNode) => void>>;
