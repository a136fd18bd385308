// The shapes of files that other programs, or other versions of this one, read.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { jsonLines, shapeOf } from "./shape.ts";

const ULID = /[0-9A-HJKMNP-TV-Z]{26}/g;
/** A file that every database of LevelDB has. */
const LEVELDB = "CURRENT";

/** By path: the shape of each file below the directory. Files whose names differ by an id count as one. */
export function fileShapes(directory: string, below = ""): Record<string, string> {
  const shapes: Record<string, string> = {};
  for (const entry of readdirSync(join(directory, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    const title = path.replaceAll(ULID, "ULID");
    if (!entry.isDirectory()) shapes[title] = fileShape(join(directory, path));
    else if (readdirSync(join(directory, path)).includes(LEVELDB)) shapes[`${title}/`] = "LevelDB";
    else Object.assign(shapes, fileShapes(directory, path));
  }
  return shapes;
}

function fileShape(file: string): string {
  const text = readFileSync(file, "utf8");
  switch (/[^.]*$/.exec(file)?.[0]) {
    case "json":
    case "jsonl":
    case "cursor":
    case "lock":
      return shapeOf(text.startsWith("{\n") ? [JSON.parse(text)] : jsonLines(text));
    case "toml":
      return shapeOf([parse(text)]);
    case "csv":
      return text.split("\r\n", 1)[0] ?? "";
    case "pem":
      return (text.match(/^(?:# [^:]*:|-----BEGIN.*)/gm) ?? []).join("\n");
    default:
      return "text";
  }
}
