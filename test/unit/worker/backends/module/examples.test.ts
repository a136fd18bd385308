import { expect } from "chai";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Manifest } from "../../../../../src/config/manifest.ts";
import { loadManifest } from "../../../../../src/config/manifest.ts";
import { executeText, useCodeRig } from "../../../../support/code-rig.ts";

function example(name: string): string {
  return fileURLToPath(new URL(`../../../../../examples/${name}`, import.meta.url));
}

function itemsOf(name: string): string[] {
  return readFileSync(example(name), "utf8").trim().split("\n");
}

function moduleOf(manifest: Manifest): { readonly file: string; readonly export: string } {
  if (manifest.backend !== "module" && manifest.backend !== "machine") throw new Error("no code is named");
  return { file: resolve(dirname(manifest.file), manifest.spec.module), export: manifest.spec.export };
}

/** A training that ends as many epochs after this checkpoint. */
function shortened(
  saved: Uint8Array,
  left: number,
): { readonly checkpoint: Uint8Array; readonly epochs: number } {
  const whole = JSON.parse(Buffer.from(saved).toString("utf8")) as {
    readonly snapshot: { readonly context: { readonly epoch: number; epochs: number } };
  };
  const { context } = whole.snapshot;
  context.epochs = context.epoch + left;
  return { checkpoint: Buffer.from(JSON.stringify(whole)), epochs: context.epochs };
}

describe("the examples of the backends that execute JavaScript", () => {
  const rig = useCodeRig();

  it("images: makes each picture small and counts its colours", async () => {
    const manifest = await loadManifest(example("images/images.toml"));
    if (manifest.backend !== "module") throw new Error("it is a module");
    const { file, ...code } = moduleOf(manifest);
    const backend = await rig().moduleAt(file, { ...code, parameters: manifest.spec.parameters });
    const outputs: Record<string, unknown>[] = [];
    for (const item of itemsOf("images/items.jsonl"))
      outputs.push(JSON.parse((await executeText(backend, item)).output ?? "") as Record<string, unknown>);
    expect(outputs.map(({ file: name, size }) => [name, size])).to.deep.equal(
      ["dusk", "mandelbrot", "moire", "tiles"].map((name) => [`inputs/${name}.png`, [96, 64]]),
    );
    expect(outputs[3]).to.deep.include({
      average: [130, 140, 145],
      brightness: [0, 3072, 0, 0, 0, 0, 3072, 0],
    });
    for (const { thumbnail } of outputs)
      expect(String(thumbnail))
        .to.match(/^data:image\/png;base64,iVBORw0KGgo/)
        .and.have.length.lessThan(4_096);
  });

  it("images: says of a picture that is none what is wrong with it", async () => {
    const manifest = await loadManifest(example("images/images.toml"));
    const { file, ...code } = moduleOf(manifest);
    const backend = await rig().moduleAt(file, code);
    const { outcome } = await executeText(backend, `{"file":"README.md"}`);
    expect(outcome).to.deep.equal({ kind: "error", message: "it is not a PNG file" });
  });

  it("long-machine: trains, and goes on in another process where it was ended", async () => {
    const manifest = await loadManifest(example("long-machine/training.toml"));
    const { file, ...code } = moduleOf(manifest);
    const item = JSON.stringify({ id: "x", epochs: 1_000_000, epoch_ms: 20, journal: "journal" });
    const controller = new AbortController();
    const first = await executeText(await rig().machineAt(file, code), item, {
      signal: controller.signal,
      onLog: (log) => log.includes("epoch 2") && controller.abort(),
    });
    if (first.outcome.kind !== "preempted" || first.outcome.checkpoint === undefined)
      throw new Error("it left no checkpoint");
    // However late it was ended, three epochs are left.
    const { checkpoint, epochs } = shortened(first.outcome.checkpoint, 3);
    const second = await executeText(await rig().machineAt(file, code), item, { checkpoint });
    const loss = Number((0.8 ** epochs).toFixed(6));
    expect(JSON.parse(second.output ?? "")).to.deep.equal({ epochs, loss });
    const journal = readFileSync(rig().directory.file("journal"), "utf8");
    expect(journal).to.equal(Array.from({ length: epochs }, (_, at) => `x ${at + 1}\n`).join(""));
    expect(first.log + second.log).to.match(/^(x: epoch \d+, loss \d\.\d{4}\n)+$/);
    expect(first.log + second.log).to.have.string(`x: epoch ${epochs}, `);
  });

  it("long-machine: the items that ship with it are what it takes", () => {
    for (const line of itemsOf("long-machine/items.jsonl"))
      expect(JSON.parse(line)).to.have.all.keys("id", "epochs", "epoch_ms");
  });
});
