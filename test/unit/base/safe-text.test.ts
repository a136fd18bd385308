import { expect } from "chai";
import { printable, printableLines, redactCommand, redactSecrets } from "../../../src/base/safe-text.ts";

describe("text that may be shown", () => {
  const SECRETS: readonly [text: string, shown: string][] = [
    ["postgres://bob:pa55@db/x", "postgres://bob:[redacted]@db/x"],
    ["http://bob:p@55@host:80/v1", "http://bob:[redacted]@host:80/v1"],
    ["https://tok@host/", "https://[redacted]@host/"],
    ["pip git+https://tok@host/r.git", "pip git+https://[redacted]@host/r.git"],
    ["https://a@b:c@host/", "https://[redacted]@host/"],
    ["GET /v1?a=1&api_key=pa55&b=2", "GET /v1?a=1&api_key=[redacted]&b=2"],
    ["http://h/?access_token=pa55#top", "http://h/?access_token=[redacted]#top"],
    ["authorization: Bearer pa55pa55", "authorization: [redacted]"],
    ["'Authorization': 'Basic pa55'", "'Authorization': '[redacted]'"],
  ];
  for (const [text, shown] of SECRETS) {
    it(`has no secret: ${shown}`, () => {
      expect(redactSecrets(text)).to.equal(shown);
    });
  }

  it("leaves other text as it is", () => {
    const text =
      "see http://h:80/a?max_tokens=5&page=2 and mail bob@host: 3 tokens, ssh://git@host/r, http://h/@x";
    expect(redactSecrets(text)).to.equal(text);
  });
});

describe("a command line that may be shown", () => {
  const COMMANDS: readonly [words: readonly string[], shown: string][] = [
    [["env", "HF_TOKEN=pa55 pa55", "python3", "x.py"], "env HF_TOKEN=[redacted] python3 x.py"],
    [["docker", "run", "-e", "LEVEL=pa55", "image"], "docker run -e LEVEL=[redacted] image"],
    [["docker", "run", "--env=LEVEL=pa55"], "docker run --env=LEVEL=[redacted]"],
    [["sh", "-c", "cd x; A=pa55 B='pa 55' work"], "sh -c cd x; A=[redacted] B=[redacted] work"],
    [["work", "--api-key", "pa55", "--fast"], "work --api-key [redacted] --fast"],
    [["work", "--password=pa55 55", "-v"], "work --password=[redacted] -v"],
    [["sh", "-c", "work --token pa55 | cat"], "sh -c work --token [redacted] | cat"],
    [["curl", "-H", "X-Api-Key: pa55"], "curl -H X-Api-Key: [redacted]"],
    [["curl", "http://bob:pa55@host/"], "curl http://bob:[redacted]@host/"],
    [["work", "--password", "correct horse battery", "-v"], "work --password [redacted] -v"],
    [["work", "--token", "ab,cd;ef'gh"], "work --token [redacted]"],
    [["work", "--secret", "-abc"], "work --secret [redacted]"],
    [["work", "--password", "[abc"], "work --password [redacted]"],
    [["work", "--secret", "--api-key", "$KEY"], "work --secret [redacted] [redacted]"],
    [["work", "api_key=pa55;55&55"], "work api_key=[redacted]"],
    [["docker", "run", "--env=LEVEL=pa 55"], "docker run --env=LEVEL=[redacted]"],
    [["curl", "-H", "X-Api-Key: pa55 55, 55"], "curl -H X-Api-Key: [redacted]"],
    [["curl", "-H", "Authorization: Digest a, b"], "curl -H Authorization: [redacted]"],
    [["echo", "Authorization:", "Basic", "pa55"], "echo Authorization: [redacted] [redacted]"],
    [["ssh", "host", "work --token", "pa55"], "ssh host work --token [redacted]"],
    [["curl", "-u", "bob:pa 55:55"], "curl -u bob:[redacted]"],
    [["curl", "--user", "bob:pa55", "-v"], "curl --user bob:[redacted] -v"],
    [["curl", "--user=bob:pa 55"], "curl --user=bob:[redacted]"],
    [["curl", "-ubob:pa55"], "curl -ubob:[redacted]"],
    [["curl", "https://pa55@host/"], "curl https://[redacted]@host/"],
    [["sh", "-c", 'x --api-key "a b" -v'], "sh -c x --api-key [redacted] -v"],
    [["sh", "-c", String.raw`x --api-key "a\" b" -v`], "sh -c x --api-key [redacted] -v"],
    [["sh", "-c", "x --api-key='a b'c\"d e\"; y"], "sh -c x --api-key=[redacted]; y"],
    [["sh", "-c", "x --token ab,cd:'e f|cat"], "sh -c x --token [redacted]"],
    [["sh", "-c", "x --token a,b|cat"], "sh -c x --token [redacted]|cat"],
    [["sh", "-c", "x --secret -abc --fast"], "sh -c x --secret [redacted] --fast"],
    [["sh", "-c", "x --secret --token pa55 -v"], "sh -c x --secret --token [redacted] -v"],
    [["sh", "-c", "x --token \\\n  pa55 -v"], "sh -c x --token \\\n  [redacted] -v"],
    [["sh", "-c", "x --token $(cat a b) -v"], "sh -c x --token [redacted] -v"],
    [["sh", "-c", 'curl -H "X-Api-Key: a b" h'], 'sh -c curl -H "X-Api-Key: [redacted]" h'],
    [["sh", "-c", String.raw`x --token $'a\'b c' -v`], "sh -c x --token [redacted] -v"],
    [["sh", "-c", String.raw`curl -H 'X-Api-Key: a'\''b c' h`], "sh -c curl -H 'X-Api-Key: [redacted]"],
    [["sh", "-c", String.raw`x --token \"" a b" -v`], "sh -c x --token [redacted] -v"],
    [["x", String.raw`-d "{\"x/api_key\": \"pa 55\" }"`], String.raw`x -d "{\"x/api_key\": [redacted] }"`],
    [["sh", "-c", "x --token `cat a b` -v"], "sh -c x --token [redacted] -v"],
    [["work", "--token=A=pa55"], "work --token=[redacted]"],
    [["sh", "-c", "env 'A=a b' x"], "sh -c env 'A=[redacted]' x"],
    [["sh", "-c", 'A="a\\" b" x'], "sh -c A=[redacted]"],
    [["sh", "-c", 'cd x; A="a\\" b" x'], "sh -c cd x; A=[redacted] x"],
    [["sh", "-c", "curl -u bob:pa55 h"], "sh -c curl -u bob:[redacted] h"],
    [["sh", "-c", 'curl --user "bob:pa 55" h'], "sh -c curl --user bob:[redacted] h"],
    [["curl", "-d", '{"api_key": "pa 55", "n": 1}'], 'curl -d {"api_key": [redacted] "n": 1}'],
    [["x", String.raw`-d "{\"api_key\": \"pa 55\" }"`], String.raw`x -d "{\"api_key\": [redacted]"`],
  ];
  for (const [words, shown] of COMMANDS) {
    it(`has no secret: ${shown}`, () => {
      expect(redactCommand(words)).to.equal(shown);
    });
  }

  it("leaves other text as it is", () => {
    const words = [
      ...["python3", "infer.py", "--max-tokens", "100", "--tokenizer", "x", "{.prompt}", "--n=3"],
      ...["dd", "if=/dev/zero", "a==b", "-u", "bob", "ssh://git@host/r", "basic", "--api-key"],
    ];
    expect(redactCommand(words)).to.equal(words.join(" "));
  });

  it("keeps what a shell only refers to", () => {
    const words = ["sh", "-c", 'x --api-key $KEY --token "${TOKEN}" --secret --password $B'];
    expect(redactCommand(words)).to.equal(words.join(" "));
  });

  describe("of a word that is too long shows the start,", () => {
    const long = (end: string, rest: string): string => "x ".repeat(512 - end.length / 2) + end + rest;
    const CUTS: readonly [what: string, word: string, end: string][] = [
      ["plain", "word ".repeat(20_000), "word…"],
      ["of nothing but names", "token".repeat(20_000), "toke…"],
      ["without half of a quoted value", long('--api-key "pa', '55 55"'), "--api-key [redacted]…"],
      ["without half of a value", long("--api-key pa55", "55"), "--api-key [redacted]…"],
      ["without half of a password", long("see postgres://bob:pa", "55@host/"), "postgres://[redacted]…"],
      ["without half of a URL's user", long("http://pa55", "55@host/"), "http://[redacted]…"],
      ["without half of a bearer", long("bearer pa", "5".repeat(20)), "bearer [redacted]…"],
      ["without half of a key", long("-----BEGIN PRIVATE KEY-----\nMIIE", "MIIE"), "x [redacted]…"],
    ];
    for (const [what, word, end] of CUTS) {
      it(what, () => {
        const shown = redactCommand([word]);
        expect(shown)
          .to.have.lengthOf.below(1_050)
          .and.not.match(/pa|55|MIIE/);
        expect(shown.slice(-end.length)).to.equal(end);
      });
    }

    it("and of a long value nothing", () => {
      const value = "pa55 ".repeat(20_000);
      expect(redactCommand(["x", "--token", value, `A=${value}`, `--secret=${value}`])).to.equal(
        "x --token [redacted] A=[redacted] --secret=[redacted]",
      );
      expect(redactCommand(["x ".repeat(1_000) + "--token", value])).to.match(/… \[redacted\]$/);
    });
  });
});

describe("printable text", () => {
  const OBEYED: readonly (readonly [what: string, text: string, shown: string])[] = [
    ["the start of an escape sequence", "\u001b[2J", String.raw`\u001b[2J`],
    ["the same in eight bits", "\u009b2J", String.raw`\u009b2J`],
    ["what deletes", "a\u007f", String.raw`a\u007f`],
    ["a line that is written over", "a\rb", String.raw`a\rb`],
    ["what turns the direction", "\u202egnp", String.raw`\u202egnp`],
    ["what isolates it", "\u2066a\u2069", String.raw`\u2066a\u2069`],
    ["marks of direction", "\u061c\u200e\u200f", String.raw`\u061c\u200e\u200f`],
    ["spaces without a width", "a\u200bb\ufeff\u2060", String.raw`a\u200bb\ufeff\u2060`],
    ["other ends of lines", "\u0085\u2028\u2029", String.raw`\u0085\u2028\u2029`],
    ["notes between the lines", "a\ufff9b\ufffb", String.raw`a\ufff9b\ufffb`],
    ["letters that nobody sees", "a\u{e0041}", String.raw`a\udb40\udc41`],
  ];
  for (const [what, text, shown] of OBEYED)
    it(`names ${what}`, () => {
      expect(printable(text)).to.equal(shown);
      expect(printableLines(text)).to.equal(shown);
      // As JSON it is what it was.
      expect(JSON.parse(printableLines(JSON.stringify({ [text]: text })))).to.deep.equal({ [text]: text });
    });

  it("keeps letters, joiners and emoji of all scripts", () => {
    const text = "Ärger, می\u200cخواهم, क्\u200dष, 👩\u200d💻, 漢字\ufe00";
    expect(printable(text)).to.equal(text);
  });

  it("is one line, or keeps its lines and tabs", () => {
    expect(printable("a\tb\r\nc\n")).to.equal(String.raw`a\tb\r\nc\n`);
    expect(printableLines("a\tb\r\nc\n")).to.equal("a\tb\nc\n");
  });
});
