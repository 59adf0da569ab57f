/**
 * The control of thumbnails: plain sharp in a loop. Makes photographs of 2000 x 1333 pixels in a folder, says how many, and
 * then with each line of its input how long it took to make a thumbnail of each.
 */
import { join } from "node:path";
import sharp from "sharp";
import { lines } from "../../tests/support/processes/lines.ts";

const [folder = "", count = "0"] = Deno.args;
const encoder = new TextEncoder();
const photographs: Uint8Array[] = [];

function say(text: string): void {
  Deno.stdout.writeSync(encoder.encode(`${text}\n`));
}

for (let at = 0; at < Number(count); at++) {
  // Softened noise: about as many bytes, and as much work, as a photograph.
  const background = { r: 0, g: 0, b: 0 };
  const noise = { type: "gaussian" as const, mean: 128, sigma: 60 };
  const image = sharp({ create: { width: 2000, height: 1333, channels: 3, background, noise } }).blur(1.5);
  const bytes = await image.jpeg().toBuffer();
  photographs.push(bytes);
  await Deno.writeFile(join(folder, `${at}.jpg`), bytes);
}
say(`made ${photographs.length}`);
for await (const _ of lines(Deno.stdin.readable)) {
  const startedAt = performance.now();
  for (const photograph of photographs) {
    await sharp(photograph).resize(500, 500, { fit: "cover" }).jpeg().toBuffer();
  }
  say(`looped ${performance.now() - startedAt}`);
}
