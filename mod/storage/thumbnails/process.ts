/** The image process. It drops its permissions after loading sharp, before the first image, to contain exploits. */
import type { Buffer } from "node:buffer";
import sharp from "sharp";
import type { Sharp, SharpOptions } from "sharp";
import { storageLimits } from "../limits.ts";
import { imageTypeOf, type ThumbnailSpec } from "./spec.ts";
import { encodeFrame, type MadeThumbnail, type MakeThumbnail, readFrames } from "./frames.ts";

/** The image exceeds the pixel limit, according to its header. */
class ImageTooLargeError extends Error {
  override readonly name = "ImageTooLargeError";
}

const ALPHA_MAX = 255;
const JPEG_QUALITY = 82;

/** Returns PNG if the image has transparency, otherwise JPEG. Throws {@linkcode ImageTooLargeError} or sharp's errors. */
async function makeThumbnail(bytes: Uint8Array, spec: ThumbnailSpec): Promise<Buffer> {
  if (pngPixels(bytes) > storageLimits.thumbnailSourcePixelsMax) throw new ImageTooLargeError();
  const { autoOrient: upright, hasAlpha } = await sharp(bytes, { limitInputPixels: false }).metadata();
  if (upright.width * upright.height > storageLimits.thumbnailSourcePixelsMax) throw new ImageTooLargeError();
  const small = resized(sharp(bytes, options).autoOrient(), { spec, upright }).toColourspace("srgb");
  if (!hasAlpha) return await small.jpeg({ quality: JPEG_QUALITY }).toBuffer();
  const { data, info } = await small.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
  const image = sharp(data, { raw: { width: info.width, height: info.height, channels: info.channels } });
  if (hasClear(data, info.channels) || await sourceHasClear(bytes)) return await image.png().toBuffer();
  return await image.flatten().jpeg({ quality: JPEG_QUALITY }).toBuffer();
}

/** Offset of width and height in a PNG header. */
const PNG_SIZE_AT = 16;

/** Pixels according to a PNG header, or 0. Sizes beyond any decoder are reported as too large, not as damaged. */
function pngPixels(bytes: Uint8Array): number {
  if (imageTypeOf(bytes) !== "image/png" || bytes.length < PNG_SIZE_AT + 8) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return view.getUint32(PNG_SIZE_AT) * view.getUint32(PNG_SIZE_AT + 4);
}

/** Decodes the first frame only and rejects damaged files. */
const options: SharpOptions = {
  pages: 1,
  failOn: "error",
  limitInputPixels: storageLimits.thumbnailSourcePixelsMax,
  sequentialRead: true,
};

interface Size {
  readonly width: number;
  readonly height: number;
}

/** `upright` is the size after rotation. The contained size is computed here, because sharp's is off by a pixel. */
function resized(image: Sharp, { spec, upright }: { spec: ThumbnailSpec; upright: Size }): Sharp {
  const { width, height, fit } = spec;
  if (fit === "cover") return image.resize(width, height, { fit: "cover", position: "centre" });
  const scale = Math.min(width / upright.width, height / upright.height, 1);
  const scaled = (edge: number) => Math.max(1, Math.round(edge * scale));
  return image.resize(scaled(upright.width), scaled(upright.height), { fit: "fill" });
}

/** Whether any pixel is transparent; alpha is the last channel. */
function hasClear(data: Uint8Array, channels: number): boolean {
  for (let at = channels - 1; at < data.length; at += channels) {
    if (data[at] !== ALPHA_MAX) return true;
  }
  return false;
}

/** Transparency of the source, since downscaling may lose a few transparent pixels. */
async function sourceHasClear(bytes: Uint8Array): Promise<boolean> {
  const alpha = await sharp(bytes, options).extractChannel("alpha").raw({ depth: "uchar" }).toBuffer();
  return hasClear(alpha, 1);
}

/** Maximum size of the message accompanying an image. */
const ENVELOPE_BYTES = 4_096;

async function answer(
  { message, bytes }: { readonly message: MakeThumbnail; readonly bytes: Uint8Array },
): Promise<Uint8Array<ArrayBuffer>[]> {
  const { job } = message;
  try {
    return encodeFrame({ job, ok: true } satisfies MadeThumbnail, await makeThumbnail(bytes, message));
  } catch (error) {
    const code = error instanceof ImageTooLargeError ? "image_too_large" : "invalid_image";
    return encodeFrame({ job, ok: false, error: code } satisfies MadeThumbnail, new Uint8Array(0));
  }
}

/** Makes thumbnails until standard input ends. */
async function makeThumbnails(): Promise<void> {
  // Images do not repeat, so caching is off; concurrency is set by the number of slots.
  sharp.cache(false);
  sharp.concurrency(1);
  for (const name of ["ffi", "read", "env"] as const) await Deno.permissions.revoke({ name });
  const output = Deno.stdout.writable.getWriter();
  let written: Promise<void> = Promise.resolve();
  const frames = readFrames<MakeThumbnail>(
    Deno.stdin.readable,
    storageLimits.thumbnailSourceBytesMax + ENVELOPE_BYTES,
  );
  for await (const frame of frames) {
    // The main process limits the number of jobs in flight.
    answer(frame).then((parts) => {
      for (const part of parts) written = written.then(() => output.write(part));
      return written;
    }).catch(() => Deno.exit(1));
  }
}

await makeThumbnails();
Deno.exit(0);
