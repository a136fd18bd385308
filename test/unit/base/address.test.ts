import { expect } from "chai";
import { connect, Server } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import {
  findFreePort,
  formatAddress,
  isHost,
  localAddressOf,
  parseAddress,
} from "../../../src/base/address.ts";

describe("addresses", () => {
  it("take a name, an IPv4 address or a bracketed IPv6 address, with a port", () => {
    expect(parseAddress("localhost:0")).to.deep.equal({ host: "localhost", port: 0 });
    expect(parseAddress("node-1.example.org:50051")).to.deep.equal({
      host: "node-1.example.org",
      port: 50051,
    });
    expect(parseAddress("127.0.0.1:65535")).to.deep.equal({ host: "127.0.0.1", port: 65535 });
    expect(parseAddress("[::1]:50051")).to.deep.equal({ host: "::1", port: 50051 });
  });

  for (const text of [
    "",
    "localhost",
    ":1",
    "localhost:",
    "localhost:65536",
    "localhost:-1",
    "::1:50051",
    "[127.0.0.1]:1",
    "[::1]",
    "999.1.1.1:1",
    "1.2.3:1",
    "a b:1",
    "-a:1",
    "http://a:1",
    "a..b:1",
    `${"a".repeat(64)}:1`,
  ]) {
    it(`refuse "${text}"`, () => expect(parseAddress(text)).to.equal(undefined));
  }

  it("are written as they were read", () => {
    for (const text of ["localhost:0", "127.0.0.1:1", "[fe80::1]:443"]) {
      const address = parseAddress(text);
      expect(address).to.not.equal(undefined);
      if (address !== undefined) expect(formatAddress(address)).to.equal(text);
    }
  });

  it("of every interface are reached over loopback", () => {
    expect(localAddressOf({ host: "0.0.0.0", port: 7 })).to.deep.equal({ host: "127.0.0.1", port: 7 });
    expect(localAddressOf({ host: "::", port: 7 })).to.deep.equal({ host: "::1", port: 7 });
    expect(localAddressOf({ host: "10.0.0.1", port: 7 })).to.deep.equal({ host: "10.0.0.1", port: 7 });
  });

  it("know hosts without a port", () => {
    expect(["a.b", "10.0.0.1", "::1"].map(isHost)).to.deep.equal([true, true, true]);
    expect(["", "a b", "10.0.0", "a:1"].map(isHost)).to.deep.equal([false, false, false, false]);
  });
});

describe("a port that is free", () => {
  const close = Reflect.get(Server.prototype, "close");

  afterEach(() => {
    Server.prototype.close = close;
  });

  it("is found although somebody connects to it before it is let go of, and stays", async () => {
    const clients: Socket[] = [];
    Server.prototype.close = function (this: Server, done) {
      const { port } = this.address() as AddressInfo;
      const client = connect(port, "127.0.0.1", () => close.call(this, done));
      clients.push(client.on("error", () => undefined));
      return this;
    };
    try {
      expect(await findFreePort()).to.be.greaterThan(0);
      expect(clients).to.have.length(1);
    } finally {
      for (const client of clients) client.destroy();
    }
  });
});
