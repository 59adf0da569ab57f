/** Thumbnails of truncated, forged and exploding images: the specified response, and a server that keeps running. */
import assert from "node:assert/strict";
import { storageLimits } from "../../mod/storage/limits.ts";
import { ProcessThumbnailMaker } from "../../mod/storage/thumbnails/maker.ts";
import {
  emptyPng,
  gifOfFrames,
  gifOfSize,
  jpegOfScans,
  jpegOfSize,
  pngOfText,
  webpOfSize,
} from "./support/hostile_images.ts";
import { makeImages } from "./support/images.ts";
import { errorOf, startTestStorage } from "./support/test_storage.ts";

const formats = ["jpeg", "png", "webp", "gif"] as const;
const noisy = { width: 64, height: 48, noise: true } as const;
/** Just over and far over 40 megapixels, in sizes that all four formats can express. */
const tooLarge = { width: 8_200, height: 5_000 };
const farTooLarge = { width: 16_383, height: 16_383 };
/** Just below. */
const largest = { width: 6_320, height: 6_320 };
/** Large enough to explode, yet quick to make. */
const large = { width: 4_000, height: 4_000 };
/** An image that takes as long has been stopped by the timeout of the process. */
const { thumbnailMs } = storageLimits;
const AT_ONCE = 8;

Deno.test("truncated, forged and exploding images", async (t) => {
  const images = await makeImages({
    jpeg: { ...noisy, format: "jpeg" },
    png: { ...noisy, format: "png" },
    webp: { ...noisy, format: "webp" },
    gif: { ...noisy, format: "gif" },
    progressive: { ...noisy, format: "jpeg", progressive: true },
    flatJpeg: { ...largest, format: "jpeg", flat: true },
    flatWebp: { ...large, format: "webp", flat: true },
    flatGif: { ...large, format: "gif", flat: true },
  });
  await using maker = new ProcessThumbnailMaker();
  await using s = await startTestStorage({ thumbnailMaker: maker, uploadBytesMax: 40_000_000 });

  /** Response for a thumbnail of this image: `200`, or status and code. */
  async function outcome(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<string> {
    const response = await s.request(`/api/storage/${await s.upload(bytes, { type })}?thumb=50`);
    if (response.status !== 200) return await errorOf(response);
    assert.ok((await response.bytes()).length > 0);
    return "200";
  }

  for (const format of formats) {
    await t.step(
      `TH8 a ${format} truncated at every hundredth gives a thumbnail or invalid_image`,
      async () => {
        const image = images[format];
        const outcomes = new Map<string, number>();
        const percents = Array.from({ length: 99 }, (_, at) => at + 1);
        while (percents.length > 0) {
          await Promise.all(
            percents.splice(0, AT_ONCE).map(async (percent) => {
              const cut = image.slice(0, Math.ceil(image.length * percent / 100));
              const got = await outcome(cut, `image/${format}`);
              assert.ok(["200", "422 invalid_image"].includes(got), `${percent} %: ${got}`);
              outcomes.set(got, (outcomes.get(got) ?? 0) + 1);
            }),
          );
        }
        assert.ok((outcomes.get("422 invalid_image") ?? 0) > 5, JSON.stringify([...outcomes]));
        assert.equal(await outcome(image, `image/${format}`), "200");
      },
    );
  }

  await t.step("TH7 sizes beyond any decoder are too large as well", async () => {
    for (const [width, height] of [[2147483647, 2147483647], [2147483647, 1], [1, 40_000_001]] as const) {
      const image = emptyPng({ width: 1, height: 1 });
      const view = new DataView(image.buffer);
      view.setUint32(16, width);
      view.setUint32(20, height);
      assert.equal(await outcome(image, "image/png"), "422 image_too_large", `${width} x ${height}`);
    }
  });

  await t.step("TH7 too many pixels are rejected by the header of each type", async () => {
    for (const size of [tooLarge, farTooLarge]) {
      const forged: [bytes: Uint8Array<ArrayBuffer>, type: string][] = [
        [jpegOfSize(images.jpeg, size), "image/jpeg"],
        [emptyPng({ ...size, written: 1 }), "image/png"],
        [webpOfSize(images.webp, size), "image/webp"],
        [gifOfSize(images.gif, size), "image/gif"],
      ];
      for (const [bytes, type] of forged) {
        const startedAt = performance.now();
        assert.equal(await outcome(bytes, type), "422 image_too_large", `${type} ${size.width}`);
        assert.ok(performance.now() - startedAt < thumbnailMs, type);
      }
    }
  });

  await t.step("TH8 a header that declares more pixels than the data contain, within the limit", async () => {
    assert.equal(await outcome(emptyPng({ ...largest, written: 1 }), "image/png"), "422 invalid_image");
    assert.equal(await outcome(webpOfSize(images.webp, largest), "image/webp"), "422 invalid_image");
    // These two are complete files: missing pixels are grey or the background, as in browsers.
    assert.equal(await outcome(jpegOfSize(images.jpeg, largest), "image/jpeg"), "200");
    assert.equal(await outcome(gifOfSize(images.gif, largest), "image/gif"), "200");
  });

  await t.step("TH7 too many bytes are rejected by the length", async () => {
    const heavy = new Uint8Array(storageLimits.thumbnailSourceBytesMax + 1);
    heavy.set(images.jpeg);
    assert.equal(await outcome(heavy, "image/jpeg"), "422 image_too_large");
  });

  const bombs: [name: string, bytes: () => Uint8Array<ArrayBuffer>, type: string, expected: string[]][] = [
    ["a jpeg of few bytes and many pixels", () => images.flatJpeg, "image/jpeg", ["200"]],
    ["a jpeg of thousands of scans", () => jpegOfScans(images.progressive, 5_000), "image/jpeg", [
      "422 invalid_image",
    ]],
    ["a png of few bytes and many deep pixels", () => emptyPng(largest), "image/png", ["200"]],
    ["a png with a text that swells", () => pngOfText("zTXt", 1e8), "image/png", [
      "200",
      "422 invalid_image",
    ]],
    ["a png with a profile that swells", () => pngOfText("iCCP", 1e8), "image/png", [
      "200",
      "422 invalid_image",
    ]],
    ["a webp of few bytes and many pixels", () => images.flatWebp, "image/webp", ["200"]],
    ["a gif of few bytes and many pixels", () => images.flatGif, "image/gif", ["200"]],
    ["a gif of thousands of frames", () => gifOfFrames(images.gif, 5_000), "image/gif", ["200"]],
  ];
  for (const [name, bytes, type, expected] of bombs) {
    await t.step(`TH8 ${name}`, async () => {
      const image = bytes();
      const startedAt = performance.now();
      const got = await outcome(image, type);
      assert.ok(expected.includes(got), got);
      assert.ok(performance.now() - startedAt < thumbnailMs, `${performance.now() - startedAt} ms`);
    });
  }

  await t.step(
    "TH6 any of the four types by its bytes is accepted for any of the four by its name",
    async () => {
      for (const named of formats) {
        for (const format of formats) {
          assert.equal(await outcome(images[format], `image/${named}`), "200", `${format} as ${named}`);
        }
        assert.equal(await outcome(images[named], `image/x-${named}`), "415 unsupported_image");
        assert.equal(await outcome(images[named], "application/octet-stream"), "415 unsupported_image");
        // Any of the four types after invalid bytes.
        const behind = new Uint8Array([...new TextEncoder().encode("<svg>"), ...images[named]]);
        assert.equal(await outcome(behind, `image/${named}`), "415 unsupported_image");
      }
    },
  );
});
