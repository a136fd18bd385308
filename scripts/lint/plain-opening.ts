// Rule: a sentence of a comment begins with its subject, a noun of the domain, and not with a word that stands for one. Questions may.
import { defineRule } from "./syntax.ts";
import type { SyntaxNode } from "./syntax.ts";

const STAND_IN = /^(?:What|Who|Whoever|Whose|Whatever|Of|Those (?:who|that|which))\b/;
/** Where a sentence ends and another may begin: not in the middle of `e.g. this`, which goes on in small letters. */
const BETWEEN_SENTENCES = /(?<=[.!?;:])\s+(?=[A-Z`(])/;
const DECORATION = /^[\s*]+/gm;

interface Comment {
  readonly type: string;
  readonly value: string;
  readonly loc?: { readonly start: { readonly line: number; readonly column: number } } | null | undefined;
}

export const plainOpening = defineRule("a sentence begins with a noun of the domain", (context, report) => ({
  Program() {
    for (const { text, first } of paragraphs(context.sourceCode.getAllComments())) {
      for (const sentence of text.split(BETWEEN_SENTENCES)) {
        const [opening] = STAND_IN.exec(sentence) ?? [];
        if (opening !== undefined && !sentence.endsWith("?"))
          report(first as unknown as SyntaxNode, `"${opening} …": begin with the noun that it stands for`);
      }
    }
  },
}));

/** Comments of one line each, on consecutive lines, are one text. */
function paragraphs(comments: readonly Comment[]): { text: string; first: Comment }[] {
  const found: { text: string; first: Comment; nextLine: number }[] = [];
  for (const comment of comments) {
    const text = comment.value.replace(DECORATION, " ").trim().replaceAll(/\s+/g, " ");
    const { line = 0, column = 0 } = comment.loc?.start ?? {};
    const last = found.at(-1);
    const goesOn =
      comment.type === "Line" && last?.nextLine === line && last.first.loc?.start.column === column;
    if (last !== undefined && goesOn) {
      last.text += ` ${text}`;
      last.nextLine++;
    } else found.push({ text, first: comment, nextLine: comment.type === "Line" ? line + 1 : -1 });
  }
  return found;
}
