import { expect } from "chai";
import { byteaArray, keyOfBytes, bytesOfKey, parseColumn } from "../../../../src/storage/postgres/bytea.ts";

describe("bytes for Postgres", () => {
  it("are an array in the server's binary form", () => {
    expect(byteaArray([Buffer.from("ab"), new Uint8Array(0)]).toString("hex")).to.equal(
      "00000001" + "00000000" + "00000011" + "00000002" + "00000001" + "00000002" + "6162" + "00000000",
    );
  });

  it("are an array without dimensions when there are none", () => {
    expect(byteaArray([]).toString("hex")).to.equal("00000000" + "00000000" + "00000011");
  });

  it("come back from their text", () => {
    expect(parseColumn(17, "\\x00ff")).to.deep.equal(Buffer.from([0, 255]));
    expect(parseColumn(25, "\\x00ff")).to.equal("\\x00ff");
    expect(keyOfBytes(bytesOfKey("items/1"))).to.equal("items/1");
  });
});
