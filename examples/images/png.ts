// Reads and writes PNG files with nothing but Node: 8 bits a channel, gray, RGB or RGBA, not interlaced.
import { crc32, deflateSync, inflateSync } from "node:zlib";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of each pixel, row by row. */
  readonly pixels: Uint8Array;
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Channels by the file's colour type. */
const CHANNELS: Readonly<Record<number, number>> = { 0: 1, 2: 3, 6: 4 };

/** Throws with what it is that cannot be read. */
export function readPng(file: Buffer): Picture {
  if (!file.subarray(0, SIGNATURE.length).equals(SIGNATURE)) throw new Error("it is not a PNG file");
  const parts = new Map<string, Buffer[]>();
  for (let at = SIGNATURE.length; at + 12 <= file.length; at += 12 + file.readUInt32BE(at)) {
    const content = file.subarray(at + 8, at + 8 + file.readUInt32BE(at));
    const type = file.toString("latin1", at + 4, at + 8);
    parts.set(type, [...(parts.get(type) ?? []), content]);
  }
  const header = parts.get("IHDR")?.[0];
  if (header === undefined) throw new Error("it has no header");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = CHANNELS[header[9] ?? -1];
  if (header[8] !== 8 || channels === undefined || header[12] !== 0)
    throw new Error("only 8 bits a channel without a palette and interlacing can be read");
  const rows = unfiltered(inflateSync(Buffer.concat(parts.get("IDAT") ?? [])), width * channels, channels);
  return { width, height, pixels: colours(rows, width * height, channels) };
}

/** Each row has a filter before it, which says what its bytes are differences to. */
function unfiltered(filtered: Buffer, stride: number, channels: number): Uint8Array {
  const height = filtered.length / (stride + 1);
  const rows = new Uint8Array(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = filtered[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x++) {
      const left = x < channels ? 0 : (rows[y * stride + x - channels] ?? 0);
      const above = y === 0 ? 0 : (rows[(y - 1) * stride + x] ?? 0);
      const corner = y === 0 || x < channels ? 0 : (rows[(y - 1) * stride + x - channels] ?? 0);
      const value = filtered[y * (stride + 1) + 1 + x] ?? 0;
      rows[y * stride + x] = value + predicted(filter, left, above, corner);
    }
  }
  return rows;
}

function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  if (filter !== 4) return 0;
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] = [left, above, corner].map((value) => Math.abs(guess - value));
  if ((toLeft ?? 0) <= (toAbove ?? 0) && (toLeft ?? 0) <= (toCorner ?? 0)) return left;
  return (toAbove ?? 0) <= (toCorner ?? 0) ? above : corner;
}

function colours(rows: Uint8Array, count: number, channels: number): Uint8Array {
  const pixels = new Uint8Array(count * 3);
  for (let at = 0; at < count; at++)
    for (let colour = 0; colour < 3; colour++)
      pixels[at * 3 + colour] = rows[at * channels + (channels === 1 ? 0 : colour)] ?? 0;
  return pixels;
}

export function writePng({ width, height, pixels }: Picture): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let y = 0; y < height; y++)
    rows.set(pixels.subarray(y * width * 3, (y + 1) * width * 3), y * (width * 3 + 1) + 1);
  const chunks = [
    ["IHDR", header],
    ["IDAT", deflateSync(rows, { level: 9 })],
    ["IEND", Buffer.alloc(0)],
  ] as const;
  return Buffer.concat([SIGNATURE, ...chunks.map(([type, content]) => chunkOf(type, content))]);
}

function chunkOf(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), content]);
  const chunk = Buffer.alloc(content.length + 12);
  chunk.writeUInt32BE(content.length, 0);
  named.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(named), content.length + 8);
  return chunk;
}
