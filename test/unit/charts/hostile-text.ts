// Names that mean something to whoever reads a picture: markup, quotes, the signs of a language, what no XML may hold.
import fc from "fast-check";

const PIECES = [
  ...["<script>alert(1)</script>", "</title>", "<!--", "-->", "]]>", "&", "&lt;", '"', "'", "`", "\\", "."],
  ...[
    "\n",
    "\r",
    "\u0000",
    "\u001b[2J",
    "\ud800",
    "\ufffe",
    "\u202e",
    "日本",
    "🚦",
    ";",
    ":",
    "#",
    "[*]",
    "--",
    "{",
    "}",
    "end",
    "a",
  ],
];

export const hostileText: fc.Arbitrary<string> = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 4 })
  .map((pieces) => pieces.join(""));
