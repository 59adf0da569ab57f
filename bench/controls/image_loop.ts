/**
 * Control for thumbnails: plain sharp in a loop. Creates images of 2000 x 1333 pixels in a folder and prints their number.
 * For each line of input it creates a thumbnail of each image and prints the duration in milliseconds.
 */
import { join } from "node:path";
import sharp from "sharp";
import { lines } from "../../tests/support/processes/lines.ts";
import { print } from "../support/print.ts";

const [folder = "", count = "0"] = Deno.args;
const images: Uint8Array[] = [];
for (let index = 0; index < Number(count); index++) {
  // Blurred noise compresses to about as many bytes as a photograph.
  const background = { r: 0, g: 0, b: 0 };
  const noise = { type: "gaussian" as const, mean: 128, sigma: 60 };
  const image = sharp({ create: { width: 2000, height: 1333, channels: 3, background, noise } }).blur(1.5);
  const bytes = await image.jpeg().toBuffer();
  images.push(bytes);
  await Deno.writeFile(join(folder, `${index}.jpg`), bytes);
}
print(`created ${images.length}`);
for await (const _ of lines(Deno.stdin.readable)) {
  const startedAt = performance.now();
  for (const image of images) await sharp(image).resize(500, 500, { fit: "cover" }).jpeg().toBuffer();
  print(`took ${performance.now() - startedAt}`);
}
