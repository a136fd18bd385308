// The fenced blocks of a Markdown file, and what the comment in front of each says about running it.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/**
 * `<!-- not run: REASON -->` stands before a block that a test cannot run; `<!-- run in the repository -->` says where;
 * `<!-- file: NAME -->` says that the block is a file of that name, for those behind it.
 */
const MARK = /^<!-- (?:not run: (?<reason>.+)|run in (?<place>the repository)|file: (?<file>[\w.-]+)) -->$/;

export interface Block {
  /** `README.md:23` */
  readonly at: string;
  readonly language: string;
  readonly text: string;
  /** Why it is not run; undefined: it is. */
  readonly notRun: string | undefined;
  readonly inRepository: boolean;
  /** The file whose contents it is. */
  readonly file: string | undefined;
}

/** README.md and everything under docs/, relative to the repository. */
export function documents(): string[] {
  const docs = readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" });
  const files = docs.filter((name) => name.endsWith(".md")).map((name) => join("docs", name));
  return ["README.md", ...files.toSorted()];
}

export function blocksOfFile(document: string): Block[] {
  const path = join(REPOSITORY, document);
  return blocksOf(relative(REPOSITORY, path), readFileSync(path, "utf8"));
}

export function blocksOf(name: string, markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: { at: string; language: string; lines: string[]; mark: RegExpExecArray | null } | undefined;
  let mark: RegExpExecArray | null = null;
  markdown.split("\n").forEach((line, index) => {
    const fence = /^\s*(?:```|~~~)(\S*)/.exec(line);
    if (open !== undefined && fence === null) open.lines.push(line);
    else if (open !== undefined) {
      const { at, language, lines } = open;
      const { reason, place, file } = open.mark?.groups ?? {};
      blocks.push({
        at,
        language,
        text: lines.join("\n"),
        notRun: reason,
        inRepository: place !== undefined,
        file,
      });
      open = undefined;
    } else if (fence !== null) {
      open = { at: `${name}:${index + 1}`, language: fence[1] ?? "", lines: [], mark };
      mark = null;
    } else if (line.trim() !== "") mark = MARK.exec(line.trim());
  });
  return blocks;
}
