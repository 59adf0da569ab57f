/**
 * The process that makes thumbnails: images come on its standard input, thumbnails leave on its standard output. It holds
 * no permission but what loading sharp took, gives that up before the first image, and ends when its input does. Whatever a
 * hostile image does to the decoder stays in here.
 */
import sharp from "sharp";
import { storageLimits } from "../limits.ts";
import { encodeFrame, type MadeThumbnail, type MakeThumbnail, readFrames } from "./frames.ts";
import { ImageTooLargeError, makeThumbnail } from "./make_thumbnail.ts";

/** Room for the message around an image. */
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
  // Images do not repeat, and as many are made at once as there is room for.
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
    // Main bounds how many are here at once.
    answer(frame).then((parts) => {
      for (const part of parts) written = written.then(() => output.write(part));
      return written;
    }).catch(() => Deno.exit(1));
  }
}

await makeThumbnails();
Deno.exit(0);
