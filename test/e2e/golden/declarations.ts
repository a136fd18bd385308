// The types that users of the package see: those of dist, as the compiler understands them, wherever they are declared. Orders
// that mean nothing (of members, of the parts of a union) are by name.
import ts from "typescript";
import { repositoryFile } from "../../../scripts/generate-docs.ts";

const OPTIONS: ts.CompilerOptions = {
  ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true, noEmit: true },
  ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  ...{ target: ts.ScriptTarget.ESNext, lib: ["lib.esnext.d.ts"], types: ["node"] },
};
const FORMAT: ts.NodeBuilderFlags =
  ts.NodeBuilderFlags.NoTruncation |
  ts.NodeBuilderFlags.InTypeAlias |
  ts.NodeBuilderFlags.UseSingleQuotesForStringLiteralType;
/** A longer union has a line for each of its parts. */
const UNION_MAX = 110;
/** Not all of the types that these are applied to is seen by users. */
const SELECTING: ReadonlySet<string> = new Set(["Omit", "Pick"]);
const PRINTER = ts.createPrinter({ removeComments: true });
const NOWHERE = ts.createSourceFile("printed.ts", "", ts.ScriptTarget.ESNext);

export class Declarations {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;

  /** `modules` are paths of declarations, from the root of the repository. */
  constructor(...modules: readonly string[]) {
    this.#program = ts.createProgram(modules.map(repositoryFile), OPTIONS);
    this.#checker = this.#program.getTypeChecker();
  }

  /** By name: each export of the module, and each type of the package that those mention. */
  ofModule(module: string): Record<string, string> {
    const exported = this.#exportsOf(module);
    const texts = new Map<ts.Symbol, string>();
    const waiting = [...exported];
    for (let symbol = waiting.shift(); symbol !== undefined; symbol = waiting.shift()) {
      if (texts.has(symbol)) continue;
      const mentioned = new Set<ts.Symbol>();
      texts.set(symbol, this.#textOf(symbol, mentioned));
      waiting.push(...mentioned);
    }
    const unions = [...texts].filter(([, text]) => text.length > UNION_MAX && !/[:\n]/.test(text));
    const named = ([symbol, text]: [ts.Symbol, string]): [string, string] => {
      const others = unions.filter(([other]) => other !== symbol);
      const short = others.reduce((left, [{ name }, union]) => left.replaceAll(union, name), text);
      const isUnion = unions.some(([other]) => other === symbol);
      const title = exported.includes(symbol) ? symbol.name : `${symbol.name} (mentioned)`;
      return [title, isUnion ? short.replaceAll(" | ", "\n") : short];
    };
    return Object.fromEntries([...texts].map(named));
  }

  /** The fields of each field of an interface that the module exports, with their types. */
  fieldsOf(module: string, name: string): Record<string, Record<string, string>> {
    const symbol = this.#exportsOf(module).find((each) => each.name === name);
    if (symbol === undefined) throw new Error(`${module} exports no ${name}`);
    const typesOf = (property: ts.Symbol): Record<string, string> => {
      const fields = this.#checker.getPropertiesOfType(this.#checker.getTypeOfSymbol(property));
      return Object.fromEntries(
        fields.map((field) => [field.name, this.#typeText(this.#checker.getTypeOfSymbol(field))]),
      );
    };
    const rows = this.#checker.getPropertiesOfType(this.#checker.getDeclaredTypeOfSymbol(symbol));
    return Object.fromEntries(rows.map((row) => [row.name, typesOf(row)]));
  }

  #exportsOf(module: string): ts.Symbol[] {
    const source = this.#program.getSourceFile(repositoryFile(module));
    const symbol = source && this.#checker.getSymbolAtLocation(source);
    if (symbol === undefined) throw new Error(`${module} is no module`);
    return this.#checker
      .getExportsOfModule(symbol)
      .map((each) => (has(each, ts.SymbolFlags.Alias) ? this.#checker.getAliasedSymbol(each) : each));
  }

  /** `mentioned` takes the types of the package that stand in the text. */
  #textOf(symbol: ts.Symbol, mentioned: Set<ts.Symbol>): string {
    const value = has(symbol, ts.SymbolFlags.Value) ? this.#checker.getTypeOfSymbol(symbol) : undefined;
    if (value !== undefined && !has(symbol, ts.SymbolFlags.Type)) return this.#typeText(value, mentioned);
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const constructors = (value?.getConstructSignatures() ?? []).map((each) => {
      const isHidden = each.declaration !== undefined && isPrivate(each.declaration);
      return `${isHidden ? "private " : ""}new ${this.#signature(each, mentioned)}`;
    });
    const statics = value === undefined ? [] : this.#members(value, mentioned);
    if (!isObject(type)) return this.#typeText(type, mentioned);
    return [
      ...constructors,
      ...statics.map((each) => `static ${each}`),
      ...this.#members(type, mentioned),
    ].join("\n");
  }

  #members(type: ts.Type, mentioned: Set<ts.Symbol>): string[] {
    const index = this.#checker
      .getIndexInfosOfType(type)
      .map((each) => `[${this.#typeText(each.keyType)}]: ${this.#typeText(each.type, mentioned)}`);
    const members = this.#checker
      .getPropertiesOfType(type)
      // Members that a mapped type makes are declared nowhere.
      .filter((member) => member.declarations?.some(isOurs) ?? !has(member, ts.SymbolFlags.Prototype))
      .filter(({ declarations = [] }) => !declarations.some(isPrivate));
    return [...index, ...members.map((member) => this.#member(member, mentioned))].toSorted();
  }

  #member(member: ts.Symbol, mentioned: Set<ts.Symbol>): string {
    const isOptional = has(member, ts.SymbolFlags.Optional);
    const type = this.#checker.getTypeOfSymbol(member);
    const text = this.#typeText(type, mentioned);
    // One that may be left out, and one that may be undefined too, are two types here.
    const mayBeUndefined = type.isUnion() && type.types.includes(this.#checker.getUndefinedType());
    const shown = isOptional && !mayBeUndefined ? text.replace(/ \| undefined$/, "") : text;
    const name = member.name.replace(/^__@(\w+)@\d+$/, "[$1]");
    return `${isReadonly(member) ? "readonly " : ""}${name}${isOptional ? "?" : ""}: ${shown}`;
  }

  #signature(signature: ts.Signature, mentioned: Set<ts.Symbol>): string {
    const kind = ts.SyntaxKind.FunctionType;
    return printed(
      this.#checker.signatureToSignatureDeclaration(signature, kind, undefined, FORMAT),
      mentioned,
    );
  }

  #typeText(type: ts.Type, mentioned = new Set<ts.Symbol>()): string {
    return printed(this.#checker.typeToTypeNode(type, undefined, FORMAT), mentioned);
  }
}

function printed(node: ts.Node | undefined, mentioned: Set<ts.Symbol>): string {
  if (node === undefined) throw new Error("a type that cannot be written");
  collectMentioned(node, mentioned);
  return textOf(ordered(node));
}

function textOf(node: ts.Node): string {
  return PRINTER.printNode(ts.EmitHint.Unspecified, node, NOWHERE).replaceAll(/\s+/g, " ");
}

/** `undefined` and `null` stay last in a union. */
function ordered(node: ts.Node): ts.Node {
  const inner = ts.visitEachChild(node, ordered, undefined);
  if (ts.isUnionTypeNode(inner)) return ts.factory.createUnionTypeNode(sorted(inner.types));
  return ts.isTypeLiteralNode(inner) ? ts.factory.createTypeLiteralNode(sorted(inner.members)) : inner;
}

function sorted<Node extends ts.Node>(nodes: readonly Node[]): Node[] {
  const keyOf = (node: Node): string => {
    const text = textOf(node);
    return text === "undefined" || text === "null" ? `~${text}` : text;
  };
  return nodes.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}

/** The compiler leaves the symbol at each name that it writes. */
function collectMentioned(node: ts.Node, into: Set<ts.Symbol>): void {
  if (ts.isTypeReferenceNode(node) && SELECTING.has(textOf(node.typeName))) return;
  const { symbol } = node as { readonly symbol?: ts.Symbol };
  const isType = symbol !== undefined && has(symbol, ts.SymbolFlags.Type & ~ts.SymbolFlags.TypeParameter);
  if (ts.isIdentifier(node) && isType && symbol.declarations?.some(isOurs) === true) into.add(symbol);
  ts.forEachChild(node, (inner) => collectMentioned(inner, into));
}

function has({ flags }: ts.Symbol, flag: ts.SymbolFlags): boolean {
  return (flags & flag) !== 0;
}

function isObject(type: ts.Type): boolean {
  return (type.flags & ts.TypeFlags.Object) !== 0;
}

function isOurs(declaration: ts.Declaration): boolean {
  return declaration.getSourceFile().fileName.startsWith(repositoryFile("dist/"));
}

function isPrivate(declaration: ts.Declaration): boolean {
  const flags = ts.getCombinedModifierFlags(declaration);
  return (
    (flags & ts.ModifierFlags.NonPublicAccessibilityModifier) !== 0 || declaration.getText().startsWith("#")
  );
}

/** As the compiler marks a member that a mapped type has made readonly; no declaration says so. */
const MAPPED_READONLY = 8;

function isReadonly(member: ts.Symbol): boolean {
  const { links, declarations = [] } = member as ts.Symbol & {
    readonly links?: { readonly checkFlags?: number };
  };
  if (((links?.checkFlags ?? 0) & MAPPED_READONLY) !== 0) return true;
  return declarations.some(
    (each) =>
      ts.isGetAccessorDeclaration(each) ||
      (ts.getCombinedModifierFlags(each) & ts.ModifierFlags.Readonly) !== 0,
  );
}
