/**
 * The image process: reads images from standard input and writes thumbnails to standard output. It drops its permissions
 * after loading sharp and before the first image, and exits when its input ends, so exploits of the decoder are contained.
 */
import sharp from "sharp";
import { storageLimits } from "../limits.ts";
import { encodeFrame, type MadeThumbnail, type MakeThumbnail, readFrames } from "./frames.ts";
import { ImageTooLargeError, makeThumbnail } from "./make_thumbnail.ts";

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
