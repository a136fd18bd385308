// Rule: nothing branches on the text of an error. Texts are for people and change; codes and kinds are for programs.
// It follows the text of an error (`message`, `stack`, `String(error)`, a template with it) through variables and
// string methods, and reports where a decision is taken on it. It needs types: other things have a `message` too.
import type { Rule, Scope } from "eslint";
import ts from "typescript";
import { child, children, defineRule, isWrapper, keyOf, nameOf, type SyntaxNode } from "./syntax.ts";

interface TypeServices {
  readonly program: ts.Program | null;
  readonly esTreeNodeToTSNodeMap: { get(node: SyntaxNode): ts.Node | undefined };
}

const TEXT_FIELDS = new Set(["message", "rawMessage", "stack"]);
const TO_TEXT = new Set(["toString", "toLocaleString"]);
/** Functions that make the text of an error, given the error. */
const TEXT_MAKERS = new Set(["String", "describeError", "format", "inspect", "stringify"]);
/** Methods that answer a question about a string, called on it or with it. */
const QUESTIONS = new Set([
  "endsWith",
  "exec",
  "get",
  "has",
  "includes",
  "indexOf",
  "is",
  "lastIndexOf",
  "localeCompare",
  "match",
  "matchAll",
  "search",
  "startsWith",
  "test",
]);
const COMPARISONS = new Set(["==", "===", "!=", "!==", "<", "<=", ">", ">=", "in"]);
const TESTED = new Set(["IfStatement", "WhileStatement", "DoWhileStatement", "ForStatement"]);
const ERROR_NAME = /^(?:e|err|error|ex|exception|cause|reason)$|(?:Error|Cause)$/;

export const errorText = defineRule("nothing branches on the text of an error", (context, report) => {
  const { isError } = errorTypes(context);
  const follow = follower(context.sourceCode.scopeManager, (node) => {
    report(node, "a decision on the text of an error: decide on its code or its kind");
  });
  return {
    MemberExpression(node) {
      const key = keyOf(node);
      const object = child(node, "object");
      if (key === undefined || !isError(object)) return;
      if (TEXT_FIELDS.has(key)) follow(node);
      else if (TO_TEXT.has(key) && node.parent?.type === "CallExpression") follow(node.parent);
    },
    CallExpression(node) {
      if (makesText(node) && children(node, "arguments").some(isError)) follow(node);
    },
    TemplateLiteral(node) {
      if (children(node, "expressions").some(isError)) follow(node);
    },
    BinaryExpression(node) {
      if (node["operator"] === "+" && (isError(child(node, "left")) || isError(child(node, "right"))))
        follow(node);
    },
    "ObjectPattern > Property"(node: SyntaxNode) {
      const pattern = node.parent;
      const value = child(node, "value");
      const local = value?.type === "AssignmentPattern" ? child(value, "left") : value;
      if (pattern === undefined || local === undefined || !TEXT_FIELDS.has(keyOf(node) ?? "")) return;
      if (pattern.parent?.type === "CatchClause" || isError(pattern)) follow.variable(local);
    },
  };
});

/** Follows a text from where it is made to where something is decided on it. */
function follower(scopes: Scope.ScopeManager, decided: (node: SyntaxNode) => void) {
  const seen = new Set<SyntaxNode>();
  const variable = (name: SyntaxNode): void => {
    for (const reference of readsOf(scopes, name)) follow(reference);
  };
  const follow = (node: SyntaxNode): void => {
    if (seen.has(node)) return;
    seen.add(node);
    const { parent } = node;
    if (parent === undefined) return;
    if (isDecision(node, parent)) return decided(node);
    const stored = storedIn(node, parent);
    if (stored !== undefined) variable(stored);
    const next = passesOn(node, parent);
    if (next !== undefined) follow(next);
  };
  return Object.assign(follow, { variable });
}

function isDecision(node: SyntaxNode, parent: SyntaxNode): boolean {
  const { type } = parent;
  if (type === "BinaryExpression")
    return COMPARISONS.has(String(parent["operator"])) && !isPresenceCheck(parent);
  if (type === "UnaryExpression") return parent["operator"] === "!";
  if (type === "LogicalExpression") return parent["operator"] === "&&" && child(parent, "left") === node;
  if (type === "ConditionalExpression" || TESTED.has(type)) return child(parent, "test") === node;
  if (type === "SwitchStatement" || type === "SwitchCase") return true;
  if (type === "CallExpression")
    return isQuestion(child(parent, "callee")) && child(parent, "callee") !== node;
  if (type !== "MemberExpression") return false;
  const isLookUp = child(parent, "property") === node && parent["computed"] === true;
  return isLookUp || (child(parent, "object") === node && isQuestion(parent));
}

/** `error.stack !== undefined` asks whether there is a text, not what it says. */
function isPresenceCheck(comparison: SyntaxNode): boolean {
  const right = child(comparison, "right");
  return nameOf(right) === "undefined" || (right?.type === "Literal" && right["value"] === null);
}

function isQuestion(callee: SyntaxNode | undefined): boolean {
  return callee?.type === "MemberExpression" && QUESTIONS.has(keyOf(callee) ?? "");
}

function makesText(call: SyntaxNode): boolean {
  const callee = child(call, "callee");
  return TEXT_MAKERS.has(
    nameOf(callee) ?? (callee?.type === "MemberExpression" ? keyOf(callee) : undefined) ?? "",
  );
}

/** The name that the text gets, when it is stored under one. */
function storedIn(node: SyntaxNode, parent: SyntaxNode): SyntaxNode | undefined {
  if (parent.type === "VariableDeclarator" && child(parent, "init") === node) return child(parent, "id");
  if (parent.type === "AssignmentExpression" && child(parent, "right") === node) return child(parent, "left");
  return undefined;
}

/** The expression around `node` whose value is still the text, or made of it. */
function passesOn(node: SyntaxNode, parent: SyntaxNode): SyntaxNode | undefined {
  if (isWrapper(parent)) return parent;
  switch (parent.type) {
    case "TemplateLiteral":
    case "LogicalExpression":
    case "ConditionalExpression":
      return parent;
    case "BinaryExpression":
      return parent["operator"] === "+" ? parent : undefined;
    case "MemberExpression":
      return child(parent, "object") === node ? parent : undefined;
    case "CallExpression":
      return child(parent, "callee") === node || nameOf(child(parent, "callee")) === "String"
        ? parent
        : undefined;
    default:
      return undefined;
  }
}

function readsOf(scopes: Scope.ScopeManager, name: SyntaxNode): SyntaxNode[] {
  for (const scope of scopes.scopes) {
    for (const { variable, reads } of scope.variables.map(readsOfVariable)) {
      const isNamed = variable.identifiers.some(
        (identifier) => (identifier as unknown as SyntaxNode) === name,
      );
      const isWritten = variable.references.some((one) => (one.identifier as unknown as SyntaxNode) === name);
      if (isNamed || isWritten) return reads;
    }
  }
  return [];
}

function readsOfVariable(variable: Scope.Variable): { variable: Scope.Variable; reads: SyntaxNode[] } {
  const reads = variable.references.filter((reference) => reference.isRead());
  return { variable, reads: reads.map((reference) => reference.identifier as unknown as SyntaxNode) };
}

function errorTypes(context: Rule.RuleContext) {
  const services = context.sourceCode.parserServices as unknown as TypeServices;
  const checker = services.program?.getTypeChecker();
  const isErrorType = (type: ts.Type): boolean => {
    if (type.isUnionOrIntersection()) return type.types.some(isErrorType);
    const symbol = type.getSymbol();
    if (symbol === undefined || checker === undefined) return false;
    const declared = checker.getDeclaredTypeOfSymbol(symbol);
    const bases = declared.isClassOrInterface() ? checker.getBaseTypes(declared) : [];
    return symbol.name === "Error" || bases.some(isErrorType);
  };
  const isError = (node: SyntaxNode | undefined): boolean => {
    if (node === undefined) return false;
    if (isWrapper(node) && isError(child(node, "expression"))) return true;
    const tsNode = services.esTreeNodeToTSNodeMap.get(node);
    if (tsNode === undefined || checker === undefined) return false;
    const type = checker.getTypeAtLocation(tsNode);
    const isOpen = (type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0;
    return isOpen ? isCaught(context, node) : isErrorType(type);
  };
  return { isError };
}

/** Of a value without a type: is it what a `catch` caught, or named like an error? */
function isCaught(context: Rule.RuleContext, node: SyntaxNode): boolean {
  const name = node.type === "MemberExpression" ? keyOf(node) : nameOf(node);
  if (name === undefined) return false;
  if (ERROR_NAME.test(name)) return true;
  let scope: Scope.Scope | null = context.sourceCode.getScope(node as unknown as Rule.Node);
  for (; scope !== null; scope = scope.upper) {
    const variable = scope.set.get(name);
    if (variable !== undefined) return variable.defs.some((definition) => definition.type === "CatchClause");
  }
  return false;
}
