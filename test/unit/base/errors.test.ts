import { expect } from "chai";
import fc from "fast-check";
import { EXIT } from "../../../src/base/error-row.ts";
import { ERRORS } from "../../../src/base/error-table.ts";
import { describeError, errnoOf, failure, isErrorCode, RolloutError } from "../../../src/base/errors.ts";
import type { ErrorCode } from "../../../src/base/errors.ts";

const placeholders = (text: string): string[] =>
  [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? "");

/** The row with a value for each of its placeholders. */
function filled(code: ErrorCode, value: (name: string) => string | number): RolloutError {
  const { message, hint } = ERRORS[code];
  const names = [...placeholders(message), ...placeholders(hint)].filter((name) => name !== "config");
  return new RolloutError(code, Object.fromEntries(names.map((name) => [name, value(name)])));
}

describe("the table of errors", () => {
  for (const code of Object.keys(ERRORS).filter(isErrorCode)) {
    const row = ERRORS[code];

    it(`${code}: message and hint are one line each, and every value finds its place`, () => {
      const error = filled(code, (name) => `«${name}»`);
      for (const [template, text] of [
        [row.message, error.message],
        [row.hint.replaceAll("{config}", ""), error.hint],
      ] as const) {
        expect(template).to.match(/^\S.*\S$/);
        expect(text).to.equal(template.replace(/\{(\w+)\}/g, "«$1»"));
        expect(placeholders(text)).to.deep.equal([]);
      }
    });

    it(`${code}: names a failure, its exit code and what a client may do`, () => {
      expect(code).to.match(/^[a-z]+(_[a-z]+)*$/);
      expect(Object.values(EXIT)).to.include(row.exit);
      expect(row.exit).not.to.equal(EXIT.done);
      expect(row.message, "no full stop, no capital").to.match(/^[a-z{].*[^.!]$/);
      // An unchanged request may be retried only where the fault lies elsewhere.
      if (row.retry !== "never") expect(row.exit).to.equal(EXIT.unreachable);
    });
  }

  it("knows its codes, and no names that every object has", () => {
    expect(isErrorCode("store_held")).to.equal(true);
    for (const text of ["", "store", "STORE_HELD", "toString", "constructor", "__proto__"])
      expect(isErrorCode(text), text).to.equal(false);
  });

  it("has exit codes that are all different", () => {
    expect(new Set(Object.values(EXIT)).size).to.equal(Object.keys(EXIT).length);
  });
});

describe("an error of the table", () => {
  it("says what is wrong and what to do about it", () => {
    const cause = new Error("below");
    const error = failure("store_held", { path: "/data/db", holder: "pid 7" }, cause);
    expect(error).to.be.instanceOf(Error).and.include({
      name: "RolloutError",
      code: "store_held",
      message: "the database /data/db is held by another process: pid 7",
      hint: "stop that process, or use a directory of its own for this one",
      cause,
    });
    expect(error.params).to.deep.equal({ path: "/data/db", holder: "pid 7" });
    expect(error.row).to.equal(ERRORS.store_held);
  });

  it("takes numbers, and fills the same place twice", () => {
    const error = failure("tls_key_exposed", { file: "a.pem", mode: 644 });
    expect([error.message, error.hint]).to.deep.equal([
      "a.pem can be read by others (mode 644)",
      "run `chmod 600 a.pem`",
    ]);
  });

  it("stays one line whatever its values hold", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(ERRORS).filter(isErrorCode)), fc.string(), (code, value) => {
        const error = filled(code, () => `${value}\r\n  second\nthird\r`);
        for (const text of [error.message, error.hint, ...Object.values(error.params)])
          expect(text).not.to.match(/[\r\n]/);
      }),
    );
  });

  it("takes a value for what it is: no placeholders and no replacement patterns in it", () => {
    const error = failure("store_held", { path: "{holder}", holder: "$& $1 $$ {path}" });
    expect(error.message).to.equal("the database {holder} is held by another process: $& $1 $$ {path}");
  });

  it("leaves a placeholder without a value as it is written", () => {
    expect(new RolloutError("store_held", { path: "x" }).message).to.include("{holder}");
  });

  it("demands exactly the values that its row of the table names", () => {
    // @ts-expect-error a value is missing
    failure("store_held", { path: "x" });
    // @ts-expect-error a value has no place
    failure("store_held", { path: "x", holder: "y", more: "z" });
    // @ts-expect-error no such row
    expect(() => failure("unheard_of", {})).to.throw();
    failure("interrupted", {});
  });
});

describe("the errno of an error", () => {
  const withCode = (code: unknown, cause?: unknown): Error =>
    Object.assign(new Error("x", { cause }), { code });

  it("is its own or that of the first cause that has one", () => {
    expect(errnoOf(withCode("ENOSPC"))).to.equal("ENOSPC");
    expect(errnoOf(new Error("x", { cause: withCode("EIO", withCode("ENOENT")) }))).to.equal("EIO");
    expect(errnoOf(withCode("LEVEL_IO_ERROR", withCode("EIO")))).to.equal("EIO");
  });

  it("is undefined where no cause has one", () => {
    for (const error of [
      new Error("x"),
      withCode(5),
      withCode("enoent"),
      withCode(""),
      "ENOENT",
      undefined,
      null,
      {},
    ])
      expect(errnoOf(error)).to.equal(undefined);
  });

  it("is looked for in a bounded number of causes", () => {
    const circle: Error = withCode(1);
    circle.cause = circle;
    expect(errnoOf(circle)).to.equal(undefined);
  });
});

describe("the description of an error", () => {
  it("is one line of whatever was thrown", () => {
    expect(describeError(new RangeError("too\n  far"))).to.equal("too far");
    expect(describeError("plain\r\ntext")).to.equal("plain text");
    for (const thrown of [undefined, null, 7]) expect(describeError(thrown)).to.equal(String(thrown));
  });
});
