// What the house's own lint rules need to see of a syntax tree: plain nodes, TypeScript's included.
import type { Rule } from "eslint";

/** A node of the tree. ESLint's own type does not know TypeScript's nodes; this one knows only what every node has. */
export interface SyntaxNode {
  readonly type: string;
  readonly parent?: SyntaxNode;
  readonly [field: string]: unknown;
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** The child node in `field`, if there is one. */
export function child(node: SyntaxNode | undefined, field: string): SyntaxNode | undefined {
  const value = node?.[field];
  return isNode(value) ? value : undefined;
}

/** The child nodes in the list `field`. */
export function children(node: SyntaxNode, field: string): SyntaxNode[] {
  const value = node[field];
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** The text of a string literal, or of a template without holes. */
export function textOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node?.type !== "TemplateLiteral" || children(node, "expressions").length > 0) return undefined;
  const cooked = (children(node, "quasis")[0]?.["value"] as { cooked?: unknown } | undefined)?.cooked;
  return typeof cooked === "string" ? cooked : undefined;
}

/** The name of an identifier. */
export function nameOf(node: SyntaxNode | undefined): string | undefined {
  return node?.type === "Identifier" && typeof node["name"] === "string" ? node["name"] : undefined;
}

/** The key that a member access or a property of an object names; undefined when only run time knows. */
export function keyOf(node: SyntaxNode): string | undefined {
  const key = child(node, node.type === "MemberExpression" ? "property" : "key");
  return node["computed"] === true ? textOf(key) : (nameOf(key) ?? textOf(key));
}

const WRAPPERS = new Set([
  "ChainExpression",
  "AwaitExpression",
  "TSAsExpression",
  "TSNonNullExpression",
  "TSSatisfiesExpression",
  "TSTypeAssertion",
]);

/** True for a node that gives its only expression on, unchanged. */
export function isWrapper(node: SyntaxNode): boolean {
  return WRAPPERS.has(node.type);
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
