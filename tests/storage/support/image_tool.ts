/** Creates and measures images for tests in a separate process. Reads a list of requests and prints a list of answers. */
import sharp from "sharp";
import type { ImageRequest, Measured } from "./images.ts";

const CHANNELS = 3;

/** The same bytes in every run (a linear congruential generator), so that a failure occurs again. */
function noise(length: number): Uint8Array {
  let state = 1;
  return Uint8Array.from(
    { length },
    () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 24,
  );
}

async function answer(request: ImageRequest): Promise<string | Measured> {
  if ("measure" in request) {
    const bytes = Uint8Array.fromBase64(request.measure);
    const { format, width, height, hasAlpha, exif, icc, orientation } = await sharp(bytes).metadata();
    const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
    const pixel = (x: number, y: number) => [
      ...data.subarray((y * info.width + x) * info.channels).subarray(0, info.channels),
    ];
    return {
      format,
      size: `${width}x${height}`,
      hasAlpha,
      metadata: exif !== undefined || icc !== undefined || orientation !== undefined,
      topLeft: pixel(0, 0),
      bottomRight: pixel(info.width - 1, info.height - 1),
    };
  }
  const { width, height, format } = request;
  // Left half red, right half blue; `alpha` is that of the right half.
  const half = (background: { r: number; g: number; b: number; alpha: number }, left: number) => ({
    input: { create: { width: width / 2, height, channels: 4 as const, background } },
    left,
    top: 0,
  });
  const background = { r: 0, g: 0, b: 0, alpha: 0 };
  let image = sharp({ create: { width, height, channels: 4, background } }).composite([
    half({ r: 255, g: 0, b: 0, alpha: 1 }, 0),
    half({ r: 0, g: 0, b: 255, alpha: request.alpha ?? 1 }, width / 2),
  ]);
  if (request.noise === true) {
    image = sharp(noise(width * height * CHANNELS), { raw: { width, height, channels: CHANNELS } });
  }
  if (request.flat === true) {
    image = sharp({ create: { width, height, channels: 3, background: { r: 9, g: 9, b: 9 } } });
  }
  if (request.opaqueChannel === false) image = image.flatten();
  if (request.orientation !== undefined) image = image.withMetadata({ orientation: request.orientation });
  const progressive = request.progressive === true && { progressive: true };
  const bytes = await image.toFormat(format, { effort: 1, ...progressive }).toBuffer();
  return bytes.toBase64();
}

const requests: ImageRequest[] = await new Response(Deno.stdin.readable).json();
const answers = [];
for (const request of requests) answers.push(await answer(request));
await new Response(JSON.stringify(answers)).body?.pipeTo(Deno.stdout.writable);
