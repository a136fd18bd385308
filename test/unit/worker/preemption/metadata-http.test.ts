import { expect } from "chai";
import { askMetadata, parseMetadataUrl } from "../../../../src/worker/preemption/metadata-http.ts";
import type { MetadataAnswer } from "../../../../src/worker/preemption/metadata-http.ts";
import { GcpMetadataServer } from "../../../support/metadata-server.ts";
import type { Fault } from "../../../support/metadata-server.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { addressOf, until } from "./watching.ts";

describe("the address of a metadata server", () => {
  const accepted: Record<string, object> = {
    "http://169.254.169.254": { host: "169.254.169.254", port: 80 },
    "http://169.254.169.254/": { host: "169.254.169.254", port: 80 },
    "http://127.0.0.1:8080": { host: "127.0.0.1", port: 8080 },
    "http://[::1]:99": { host: "::1", port: 99 },
    "http://[fe80::a9fe:a9fe]": { host: "fe80::a9fe:a9fe", port: 80 },
    "http://[fd00:ec2::254]": { host: "fd00:ec2::254", port: 80 },
    "http://metadata.google.internal": { host: "metadata.google.internal", port: 80 },
  };
  for (const [url, address] of Object.entries(accepted))
    it(`may be ${url}`, () => expect(parseMetadataUrl(url)).to.deep.equal(address));

  const refused = [
    "http://10.0.0.1",
    "http://example.org",
    "http://localhost:8080",
    "http://127.0.0.1.example.org",
    "http://fe80.example.org",
    "http://feb8a.example.org",
    "http://[fd00:ec2::255]",
    "http://[2001:db8::1]",
    "http://0.0.0.0:8080",
    "http://127.0.0.1:0",
    "https://169.254.169.254",
    "http://user:secret@127.0.0.1",
    "http://127.0.0.1/latest",
    "http://127.0.0.1/?x=1",
    "http://127.0.0.1/#x",
    "169.254.169.254",
    "",
  ];
  for (const url of refused)
    it(`may not be "${url}"`, () => expect(parseMetadataUrl(url)).to.equal(undefined));
});

describe("a question to a metadata server", () => {
  let server: GcpMetadataServer;
  let clock: VirtualClock;
  let stopping: AbortController;

  beforeEach(async () => {
    clock = new VirtualClock();
    stopping = new AbortController();
    server = await GcpMetadataServer.start({ clock });
  });

  afterEach(() => server.close());

  const ask = (): Promise<MetadataAnswer> =>
    askMetadata({
      address: addressOf(server),
      path: "/computeMetadata/v1/instance/preempted",
      headers: { "metadata-flavor": "Google" },
      timeoutMs: 1_000,
      clock,
      signal: stopping.signal,
    });

  it("is answered, with the moment at which it was asked", async () => {
    server.misbehave({ kind: "slow", delayMs: 300 });
    const asking = ask();
    await server.asked(1);
    await clock.advance(300);
    const answer = await asking;
    expect(answer).to.include({ kind: "answered", status: 200, body: "FALSE", sentAtMs: 7_000 });
    expect(clock.armed).to.equal(0);
  });

  it("ends in its time when nothing comes", async () => {
    server.misbehave({ kind: "hang" });
    const asking = ask();
    await server.asked(1);
    await clock.advance(1_000);
    expect(await asking).to.deep.equal({
      kind: "unanswered",
      reason: "no answer within 1000 ms",
      isSilent: true,
    });
  });

  it("ends when it is given up, and is not asked when that was before", async () => {
    server.misbehave({ kind: "hang" });
    const asking = ask();
    await server.asked(1);
    stopping.abort();
    expect(await asking).to.have.property("kind", "unanswered");
    expect(await ask()).to.have.property("kind", "unanswered");
    expect(server.requests).to.have.length(1);
    expect(clock.armed).to.equal(0);
  });

  it("ends when the answer does not", async () => {
    server.misbehave({ kind: "flood" });
    expect(await ask()).to.deep.equal({
      kind: "unanswered",
      isSilent: false,
      reason: "an answer of more than 16384 bytes",
    });
  });

  for (const kind of ["cut", "truncate"] as const)
    it(`is unanswered when the answer is ${kind}`, async () => {
      server.misbehave({ kind } satisfies Fault);
      expect(await ask()).to.have.property("kind", "unanswered");
      expect(clock.armed).to.equal(0);
    });

  it("is unanswered when nobody listens", async () => {
    const { url } = server;
    await server.close();
    const answer = await askMetadata({
      address: addressOf({ url }),
      path: "/",
      headers: {},
      timeoutMs: 1_000,
      clock,
      signal: stopping.signal,
    });
    expect(answer).to.deep.equal({ kind: "unanswered", reason: "ECONNREFUSED", isSilent: false });
  });

  it("does not follow a redirect", async () => {
    const elsewhere = await GcpMetadataServer.start({ clock });
    server.misbehave({
      kind: "redirect",
      location: `${elsewhere.url}/computeMetadata/v1/instance/preempted`,
    });
    expect(await ask()).to.include({ kind: "answered", status: 302 });
    expect(elsewhere.requests).to.deep.equal([]);
    expect(server.requests).to.have.length(1);
    await elsewhere.close();
  });

  it("leaves no connection behind", async () => {
    await ask();
    expect(server.requests[0]?.headers).to.have.property("connection", "close");
    await until(() => clock.armed === 0);
  });
});
