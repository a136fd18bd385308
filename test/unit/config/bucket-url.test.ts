import { expect } from "chai";
import { isUrl, parseBucketUrl } from "../../../src/config/bucket-url.ts";

describe("the URL of a bucket", () => {
  for (const [text, endpoint, bucket, prefix] of [
    ["s3://states", undefined, "states", ""],
    ["s3://states/some/prefix/", undefined, "states", "some/prefix/"],
    ["https://s3.example:9000/states", "https://s3.example:9000", "states", ""],
    ["http://127.0.0.1:9000/states/a//b", "http://127.0.0.1:9000", "states", "a/b/"],
  ] as const)
    it(`${text} has a server, a bucket and a prefix`, () => {
      expect([isUrl(text), parseBucketUrl(text)]).to.deep.equal([true, { endpoint, bucket, prefix }]);
    });

  for (const text of [
    "s3://",
    "s3://Has-Capitals",
    "https://s3.example",
    "https://key:secret@s3.example/states",
    "https://s3.example/states?token=secret",
    "https://s3.example/states#part",
    "ftp://s3.example/states",
  ])
    it(`${text} is refused`, () => {
      expect([isUrl(text), parseBucketUrl(text)]).to.deep.equal([true, undefined]);
    });

  it("is no path", () => {
    expect(["./states", "/mnt/states", "s3:/states", "states"].filter(isUrl)).to.deep.equal([]);
  });
});
