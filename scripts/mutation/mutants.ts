// The mutants of a file: each is one small change that a programmer could have made by mistake. Text is changed where the syntax tree says,
// so that everything else stays as it is written.
import ts from "typescript";

export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly line: number;
  /** For people: `< → <=`. */
  readonly change: string;
}

const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
};
/** Members of a chart that are left out, one at a time: its guards, its targets and its actions. */
const CHART_MEMBERS = new Set(["guard", "target", "actions", "entry", "exit"]);

/** `isChart`: a file of statecharts, whose members are changed as well. */
export function mutantsOf(source: string, isChart: boolean): Mutant[] {
  const file = ts.createSourceFile("file.ts", source, ts.ScriptTarget.Latest, true);
  const mutants: Mutant[] = [];
  const change = (node: ts.Node, text: string, named: string, end = node.end): void => {
    const start = node.getStart(file);
    const line = file.getLineAndCharacterOfPosition(start).line + 1;
    mutants.push({ start, end, text, line, change: named });
  };
  const visit = (node: ts.Node): void => {
    if (isOfTypes(node) || isAssertion(node)) return;
    expressionsOf(node, change);
    if (isChart) chartMembersOf(node, source, change);
    else statementsOf(node, change);
    node.forEachChild(visit);
  };
  visit(file);
  return mutants;
}

type Change = (node: ts.Node, text: string, named: string, end?: number) => void;

/** Types are gone when the program runs. */
function isOfTypes(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node)
  );
}

/** An assertion says what cannot be: no test can reach the other side of it. */
function isAssertion(node: ts.Node): boolean {
  return ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "assert";
}

function expressionsOf(node: ts.Node, change: Change): void {
  if (ts.isBinaryExpression(node)) {
    const operator = node.operatorToken.getText();
    const other = OPERATORS[operator];
    const isText = [node.left, node.right].some((side) => ts.isStringLiteralLike(side));
    if (other !== undefined && !(operator === "+" && isText))
      change(node.operatorToken, other, `${operator} → ${other}`);
  } else if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
    change(node, node.operand.getText(), "! is gone");
  } else if (node.kind === ts.SyntaxKind.TrueKeyword || node.kind === ts.SyntaxKind.FalseKeyword) {
    const other = node.kind === ts.SyntaxKind.TrueKeyword ? "false" : "true";
    change(node, other, `${node.getText()} → ${other}`);
  } else if (ts.isNumericLiteral(node)) {
    change(node, `(${node.getText()} + 1)`, `${node.getText()} → ${node.getText()} + 1`);
  } else if (ts.isConditionalExpression(node)) {
    change(node.condition, `!(${node.condition.getText()})`, "the other branch of ?:");
  } else if (ts.isIfStatement(node)) {
    change(node.expression, `!(${node.expression.getText()})`, "the other branch of if");
  }
}

function statementsOf(node: ts.Node, change: Change): void {
  if (ts.isExpressionStatement(node) && !isAssertion(node.expression))
    change(node, ";", `without ${node.getText().slice(0, 50).replaceAll(/\s+/g, " ")}`);
}

function chartMembersOf(node: ts.Node, source: string, change: Change): void {
  if (!ts.isPropertyAssignment(node)) return;
  const name = node.name.getText().replaceAll('"', "");
  const isEvent = ts.isStringLiteral(node.name) && name.includes(".");
  if (!CHART_MEMBERS.has(name) && !isEvent) return;
  // Where `setup` says what the names mean.
  if (name === "actions" && ts.isObjectLiteralExpression(node.initializer)) return;
  const after = source[node.end] === "," ? node.end + 1 : node.end;
  change(node, "", `without ${name}`, after);
  if (ts.isArrayLiteralExpression(node.initializer))
    for (const element of node.initializer.elements) {
      const end = source[element.end] === "," ? element.end + 1 : element.end;
      change(element, "", `${name} without ${element.getText().slice(0, 40).replaceAll(/\s+/g, " ")}`, end);
    }
}
