/** Forged images, created by modifying bytes of valid ones. */
import { deflateSync } from "node:zlib";

type Bytes = Uint8Array<ArrayBuffer>;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Size in a JPEG's frame header of either kind. */
export function jpegOfSize(image: Bytes, { width, height }: Size): Bytes {
  const copy = image.slice();
  const view = new DataView(copy.buffer);
  let at = 2;
  while (copy[at + 1] !== 0xc0 && copy[at + 1] !== 0xc2) at += 2 + view.getUint16(at + 2);
  view.setUint16(at + 5, height);
  view.setUint16(at + 7, width);
  return copy;
}

/** Size in a lossy WebP's frame header. */
export function webpOfSize(image: Bytes, { width, height }: Size): Bytes {
  const copy = image.slice();
  const startCode = indexOf(copy, [0x9d, 0x01, 0x2a]);
  const view = new DataView(copy.buffer);
  view.setUint16(startCode + 3, width, true);
  view.setUint16(startCode + 5, height, true);
  return copy;
}

/** Size of a GIF's screen and first frame. */
export function gifOfSize(image: Bytes, { width, height }: Size): Bytes {
  const copy = image.slice();
  const view = new DataView(copy.buffer);
  const [own, frame] = [6, indexOf(copy, [0x2c, 0, 0, 0, 0]) + 5];
  for (const at of [own, frame]) {
    view.setUint16(at, width, true);
    view.setUint16(at + 2, height, true);
  }
  return copy;
}

/** A progressive JPEG with many repetitions of its last scan, all to be decoded. */
export function jpegOfScans(image: Bytes, scans: number): Bytes {
  const last = image.findLastIndex((byte, at) => byte === 0xff && image[at + 1] === 0xda);
  const scan = image.subarray(last, -2);
  const copy = new Uint8Array(last + scan.length * scans + 2);
  copy.set(image.subarray(0, last));
  for (let count = 0; count < scans; count++) copy.set(scan, last + count * scan.length);
  copy.set(image.subarray(-2), copy.length - 2);
  return copy;
}

/** A GIF that repeats its first frame. */
export function gifOfFrames(image: Bytes, frames: number): Bytes {
  const first = indexOf(image, [0x2c, 0, 0, 0, 0]);
  const frame = image.subarray(first, -1);
  const copy = new Uint8Array(first + frame.length * frames + 1);
  copy.set(image.subarray(0, first));
  for (let count = 0; count < frames; count++) copy.set(frame, first + count * frame.length);
  copy.set(image.subarray(-1), copy.length - 1);
  return copy;
}

/** A PNG of black pixels with four 16-bit channels and only `written` rows. */
export function emptyPng({ width, height, written = height }: Size & { readonly written?: number }): Bytes {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header.set([16, 6, 0, 0, 0], 8);
  return png([
    pngChunk("IHDR", header),
    pngChunk("IDAT", deflateSync(new Uint8Array(written * (1 + width * 8)))),
  ]);
}

/** A small PNG with a text or colour profile that expands to many times its size. */
export function pngOfText(type: "zTXt" | "iCCP", bytes: number): Bytes {
  const header = Uint8Array.of(0, 0, 0, 4, 0, 0, 0, 4, 8, 2, 0, 0, 0);
  const text = deflateSync(new Uint8Array(bytes));
  const named = new Uint8Array(3 + text.length);
  named.set([0x61, 0, 0]);
  named.set(text, 3);
  return png([
    pngChunk("IHDR", header),
    pngChunk(type, named),
    pngChunk("IDAT", deflateSync(new Uint8Array(4 * 13))),
  ]);
}

function png(chunks: readonly Bytes[]): Bytes {
  const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10);
  return joined([signature, ...chunks, pngChunk("IEND", new Uint8Array(0))]);
}

function pngChunk(type: string, data: Uint8Array): Bytes {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  return crc;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (crcTable[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

function joined(parts: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Throws `RangeError` if the pattern is missing. */
function indexOf(bytes: Uint8Array, pattern: readonly number[]): number {
  const found = bytes.findIndex((_, at) => pattern.every((byte, offset) => bytes[at + offset] === byte));
  if (found < 0) throw new RangeError("Cannot find the pattern in the image");
  return found;
}
