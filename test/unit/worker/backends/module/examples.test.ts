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
    const item = JSON.stringify({ id: "x", epochs: 6, epoch_ms: 50, journal: "journal" });
    const controller = new AbortController();
    const first = await executeText(await rig().machineAt(file, code), item, {
      signal: controller.signal,
      onLog: (log) => log.includes("epoch 2") && controller.abort(),
    });
    if (first.outcome.kind !== "preempted" || first.outcome.checkpoint === undefined)
      throw new Error("it left no checkpoint");
    const second = await executeText(await rig().machineAt(file, code), item, {
      checkpoint: first.outcome.checkpoint,
    });
    expect(second.output).to.equal(`{"epochs":6,"loss":0.262144}`);
    const journal = readFileSync(rig().directory.file("journal"), "utf8");
    expect(journal).to.equal([1, 2, 3, 4, 5, 6].map((epoch) => `x ${epoch}\n`).join(""));
    expect(first.log + second.log).to.match(/^(x: epoch \d, loss 0\.\d{4}\n){6}$/);
  });

  it("long-machine: the items that ship with it are what it takes", () => {
    for (const line of itemsOf("long-machine/items.jsonl"))
      expect(JSON.parse(line)).to.have.all.keys("id", "epochs", "epoch_ms");
  });
});
