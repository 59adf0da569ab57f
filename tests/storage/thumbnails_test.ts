/** Thumbnails by the real process: sizes, formats and errors of the contract. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ServiceError } from "../../mod/errors.ts";
import { storageLimits } from "../../mod/storage/limits.ts";
import { ProcessThumbnailMaker, type ThumbnailMaker } from "../../mod/storage/thumbnails/maker.ts";
import { makeImages, measure } from "./support/images.ts";
import { errorOf, startTestStorage, type TestStorage } from "./support/test_storage.ts";

const types = { jpeg: "image/jpeg", png: "image/png", webp: "image/webp", gif: "image/gif" } as const;

/** One process for all tests of this file, wrapped so that no storage closes it. */
function borrowed(maker: ThumbnailMaker): ThumbnailMaker {
  return {
    make: (load, spec) => maker.make(load, spec),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function thumbnail(s: TestStorage, id: string, query: string) {
  const response = await s.request(`/api/storage/${id}?${query}`);
  assert.equal(response.status, 200, query);
  return { headers: response.headers, bytes: await response.bytes() };
}

Deno.test("thumbnails of real images", async (t) => {
  const images = await makeImages({
    jpeg: { width: 200, height: 100, format: "jpeg" },
    png: { width: 200, height: 100, format: "png", opaqueChannel: false },
    webp: { width: 200, height: 100, format: "webp", opaqueChannel: false },
    gif: { width: 200, height: 100, format: "gif" },
    opaqueAlpha: { width: 200, height: 100, format: "png" },
    clear: { width: 200, height: 100, format: "png", alpha: 0.5 },
    clearWebp: { width: 200, height: 100, format: "webp", alpha: 0 },
    upright: { width: 200, height: 100, format: "jpeg", orientation: 6 },
    avif: { width: 64, height: 64, format: "avif" },
    tiff: { width: 64, height: 64, format: "tiff" },
  });
  await using maker = new ProcessThumbnailMaker();
  await using s = await startTestStorage({ thumbnailMaker: borrowed(maker), uploadBytesMax: 40_000_000 });
  const id = await s.upload(images.jpeg, { type: "image/jpeg", name: "a.jpg" });
  const sha256 = String((await s.call("files:metadata", { id }) as Record<string, unknown>)["sha256"]);

  await t.step("TH1 contain fits into the box without scaling up, cover fills it", async () => {
    const sizes: [query: string, size: string][] = [
      ["thumb=50", "50x25"],
      ["thumb=50x50", "50x25"],
      ["thumb=50x10", "20x10"],
      ["thumb=400x300", "200x100"],
      ["thumb=1024&fit=contain", "200x100"],
      ["thumb=1", "1x1"],
      ["thumb=50&fit=cover", "50x50"],
      ["thumb=20x60&fit=cover", "20x60"],
      ["thumb=400x300&fit=cover", "400x300"],
    ];
    const made = [];
    for (const [query] of sizes) made.push((await thumbnail(s, id, query)).bytes);
    const measured = await measure(made);
    assert.deepEqual(measured.map(({ size }) => size), sizes.map(([, size]) => size));
    assert.ok(measured.every(({ format }) => format === "jpeg"));
    // Cropped to the middle: half red, half blue.
    const [red = 0, , blue = 0] = measured[6]?.topLeft ?? [];
    assert.ok(red > 200 && blue < 60, `${red} ${blue}`);
    const [redEnd = 0, , blueEnd = 0] = measured[6]?.bottomRight ?? [];
    assert.ok(blueEnd > 200 && redEnd < 60, `${redEnd} ${blueEnd}`);
  });

  await t.step("TH1 parameters are appended with ? or &, with or without a query in the URL", async () => {
    const signed = new URL(
      String(await s.call("files:signedUrl", { id, ttlSeconds: 60 })),
      "http://host.test",
    );
    const made = [];
    for (const url of [`/api/storage/${id}`, signed.pathname + signed.search]) {
      for (const separator of ["?", "&"]) {
        const response = await s.request(`${url}${separator}thumb=50&fit=cover`);
        assert.equal(response.status, 200, `${url}${separator}`);
        made.push(new Uint8Array(await response.arrayBuffer()));
      }
    }
    assert.deepEqual((await measure(made)).map(({ size }) => size), Array(4).fill("50x50"));
  });

  await t.step("TH2 PNG when the image has transparency, JPEG otherwise", async () => {
    const forms: [bytes: Uint8Array<ArrayBuffer>, type: string, made: string][] = [
      [images.png, types.png, "image/jpeg"],
      [images.webp, types.webp, "image/jpeg"],
      [images.gif, types.gif, "image/jpeg"],
      [images.opaqueAlpha, types.png, "image/jpeg"],
      [images.clear, types.png, "image/png"],
      [images.clearWebp, types.webp, "image/png"],
      // One of the four types by its bytes, but not the declared one.
      [images.png, "Image/JPEG; a=b", "image/jpeg"],
    ];
    for (const [bytes, type, made] of forms) {
      const got = await thumbnail(s, await s.upload(bytes, { type }), "thumb=40");
      assert.equal(got.headers.get("content-type"), made, type);
      const [measured] = await measure([got.bytes]);
      assert.equal(`image/${measured?.format}`, made);
      assert.equal(measured?.size, "40x20");
    }
  });

  await t.step("TH3 rotated upright, without metadata", async () => {
    const got = await thumbnail(s, await s.upload(images.upright, { type: types.jpeg }), "thumb=50");
    const [measured] = await measure([got.bytes]);
    assert.equal(measured?.size, "25x50");
    assert.equal(measured?.metadata, false);
  });

  await t.step("TH4 headers of a thumbnail, conditions, ranges and HEAD", async () => {
    const { headers, bytes } = await thumbnail(s, id, "thumb=50x40&fit=cover");
    assert.deepEqual(Object.fromEntries(headers), {
      "accept-ranges": "none",
      "cache-control": "private, max-age=2592000, immutable",
      "content-disposition": "inline",
      "content-length": String(bytes.length),
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      "content-type": "image/jpeg",
      "etag": `"${sha256}.t1.50x40.cover"`,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    const path = `/api/storage/${id}?thumb=50x40&fit=cover`;
    const etag = headers.get("etag") ?? "";
    assert.equal((await s.request(path, { headers: { "If-None-Match": etag } })).status, 304);
    const other = await s.request(`/api/storage/${id}?thumb=50x41&fit=cover`, {
      headers: { "If-None-Match": etag },
    });
    assert.equal(other.status, 200);
    assert.equal(other.headers.get("etag"), `"${sha256}.t1.50x41.cover"`);
    await other.body?.cancel();
    const ranged = await s.request(path, { headers: { Range: "bytes=0-1" } });
    assert.equal(ranged.status, 200);
    assert.deepEqual(await ranged.bytes(), bytes);
    const head = await s.request(path, { method: "HEAD" });
    assert.deepEqual(Object.fromEntries(head.headers), Object.fromEntries(headers));
    const square = await thumbnail(s, id, "thumb=30");
    assert.equal(square.headers.get("etag"), `"${sha256}.t1.30x30.contain"`);
    const attached = await thumbnail(s, id, "thumb=30&download=1");
    assert.equal(attached.headers.get("content-disposition"), "attachment");
  });

  await t.step(
    "TH4 a cached thumbnail is returned by the fast path with the same response",
    async () => {
      const file = `/api/storage/${await s.upload(images.png, { type: types.png })}`;
      const atOnce = (path: string, init?: RequestInit) =>
        s.service.readAtOnce(new Request(`https://files.example.com:8080${path}`, init));
      for (const query of ["thumb=30", "thumb=30x20", "thumb=30x20&fit=cover", "thumb=31&fit=contain"]) {
        const path = `${file}?${query}`;
        assert.equal(atOnce(path), null);
        const made = await s.request(path);
        const bytes = await made.bytes();
        // The first request creates it, the second one reads it.
        await (await s.request(path)).body?.cancel();
        for (const next of [atOnce(path), atOnce(path)]) {
          assert.ok(next !== null, query);
          assert.deepEqual(Object.fromEntries(next.headers), Object.fromEntries(made.headers));
          assert.deepEqual([next.status, await next.bytes()], [200, bytes]);
        }
      }
      const path = `${file}?thumb=30`;
      const others: [path: string, init?: RequestInit][] = [
        [`${path}&download=1`],
        [`${path}&exp=1&sig=2`],
        [`${path}&thumb=31`],
        [`${file}?thumb=030`],
        [`${file}?thumb=30&fit=fill`],
        [`${file}?thumb=29`],
        [path, { method: "HEAD" }],
        [path, { headers: { "If-None-Match": "*" } }],
      ];
      for (const [other, init] of others) assert.equal(atOnce(other, init), null, other);
      await s.call("files:remove", { id: file.split("/").at(-1) });
      assert.equal(atOnce(path), null);
      assert.equal(await errorOf(await s.request(path)), "404 not_found");
    },
  );

  await t.step("TH5 a malformed size or fit is invalid_thumbnail", async () => {
    const wrong = [
      "",
      "0",
      "x",
      "1x",
      "x1",
      "0x1",
      "1025",
      "1x1025",
      "050",
      "50X50",
      "50x50x50",
      "-1",
      "1.5",
      "50 ",
    ];
    for (const thumb of wrong) {
      const response = await s.request(`/api/storage/${id}?thumb=${encodeURIComponent(thumb)}`);
      assert.equal(await errorOf(response), "400 invalid_thumbnail", thumb);
    }
    for (const fit of ["", "Cover", "fill"]) {
      assert.equal(
        await errorOf(await s.request(`/api/storage/${id}?thumb=50&fit=${fit}`)),
        "400 invalid_thumbnail",
      );
    }
    assert.equal(await errorOf(await s.request("/api/storage/none?thumb=x")), "404 not_found");
  });

  await t.step("TH6 any other type is unsupported_image", async () => {
    const wrong: [bytes: Uint8Array<ArrayBuffer>, type: string | null][] = [
      [images.jpeg, "text/plain"],
      [images.jpeg, null],
      [images.jpeg, "image/avif"],
      [images.avif, "image/jpeg"],
      [images.tiff, "image/png"],
      [new TextEncoder().encode("<svg xmlns='http://www.w3.org/2000/svg'/>"), "image/png"],
      [new Uint8Array(0), "image/png"],
      [crypto.getRandomValues(new Uint8Array(5_000)).fill(0, 0, 3), "image/gif"],
    ];
    for (const [bytes, type] of wrong) {
      const response = await s.request(`/api/storage/${await s.upload(bytes, { type })}?thumb=50`);
      assert.equal(await errorOf(response), "415 unsupported_image", String(type));
    }
  });

  await t.step("TH10 deleting the file deletes its thumbnails", async () => {
    const doomed = await s.upload(images.png, { type: types.png });
    await thumbnail(s, doomed, "thumb=33");
    const [row] = (await s.rows("_storage")).filter(({ _id }) => _id === doomed);
    const blob = String(row?.["blob"]);
    const folder = join(s.dir, "storage", "derived", blob.slice(0, 2), blob);
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["33x33.contain"]);
    await s.call("files:remove", { id: doomed });
    await s.service.sweep();
    assert.throws(() => Deno.readDirSync(folder), Deno.errors.NotFound);
  });
});

/** A maker whose thumbnails are completed by the test. */
class HeldMaker implements ThumbnailMaker {
  made = 0;
  gate = Promise.withResolvers<void>();

  async make(load: () => Promise<Uint8Array<ArrayBuffer>>): Promise<Uint8Array<ArrayBuffer>> {
    this.made++;
    await load();
    await this.gate.promise;
    return Uint8Array.of(0xff, 0xd8, 0xff, 0xe0);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

Deno.test("TH9 a thumbnail is created once for concurrent and later requests", async () => {
  const maker = new HeldMaker();
  await using s = await startTestStorage({ thumbnailMaker: maker });
  const id = await s.upload(Uint8Array.of(0xff, 0xd8, 0xff), { type: "image/jpeg" });
  const answers = Array.from({ length: 20 }, () => s.request(`/api/storage/${id}?thumb=50`));
  maker.gate.resolve();
  for (const answer of answers) assert.equal((await (await answer).bytes()).length, 4);
  assert.equal((await (await s.request(`/api/storage/${id}?thumb=50`)).bytes()).length, 4);
  assert.equal(maker.made, 1);
});

Deno.test("TH9 an undecodable image is not retried", async () => {
  let tried = 0;
  const maker: ThumbnailMaker = {
    make: () => {
      tried++;
      return Promise.reject(new ServiceError("invalid_image"));
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  await using s = await startTestStorage({ thumbnailMaker: maker });
  const id = await s.upload(Uint8Array.of(0xff, 0xd8, 0xff), { type: "image/jpeg" });
  for (const size of [50, 50, 60]) {
    assert.equal(await errorOf(await s.request(`/api/storage/${id}?thumb=${size}`)), "422 invalid_image");
  }
  assert.equal(tried, 1);
});

/** Names of all stored thumbnails. Their folder exists once one has been stored. */
async function storedThumbnails(dir: string): Promise<string[]> {
  try {
    const folder = join(dir, "storage", "derived");
    const names: string[] = [];
    for await (const shard of Deno.readDir(folder)) {
      for await (const file of Deno.readDir(join(folder, shard.name))) names.push(file.name);
    }
    return names;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

Deno.test("TH10 a thumbnail created while its file is deleted is removed", async () => {
  const maker = new HeldMaker();
  await using s = await startTestStorage({ thumbnailMaker: maker });
  const id = await s.upload(Uint8Array.of(0xff, 0xd8, 0xff), { type: "image/jpeg" });
  const answer = s.request(`/api/storage/${id}?thumb=50`);
  await s.call("files:metadata", { id });
  await s.call("files:remove", { id });
  await s.service.sweep();
  maker.gate.resolve();
  await (await answer).body?.cancel();
  assert.deepEqual(await storedThumbnails(s.dir), []);
});

Deno.test("FS3 a thumbnail created while its file is deleted does not remove retained contents", async () => {
  const maker = new HeldMaker();
  await using s = await startTestStorage({ thumbnailMaker: maker, keepDeletedMs: 1_000 });
  const id = await s.upload(Uint8Array.of(0xff, 0xd8, 0xff), { type: "image/jpeg" });
  const answer = s.request(`/api/storage/${id}?thumb=50`);
  await s.call("files:metadata", { id });
  await s.call("files:remove", { id });
  maker.gate.resolve();
  await (await answer).body?.cancel();
  assert.equal((await s.blobs()).length, 1);
  s.clock.now += 1_001;
  await s.service.sweep();
  assert.deepEqual(await s.blobs(), []);
  assert.deepEqual(await storedThumbnails(s.dir), []);
});

Deno.test("TH11 only allowed sizes are created, and the error lists them", async () => {
  await using s = await startTestStorage({
    thumbnailSizes: ["100x100", "40x30"],
    thumbnailMaker: new HeldMaker(),
  });
  const id = await s.upload(Uint8Array.of(0xff, 0xd8, 0xff), { type: "image/jpeg" });
  const refused = await s.request(`/api/storage/${id}?thumb=50`);
  assert.match((await refused.clone().json()).errorMessage, /100x100, 40x30/);
  assert.equal(await errorOf(refused), "400 invalid_thumbnail");
  for (const thumb of ["100", "100x100", "40x30"]) {
    const headers = { "If-None-Match": "*" };
    assert.equal((await s.request(`/api/storage/${id}?thumb=${thumb}`, { headers })).status, 304, thumb);
  }
});

Deno.test("TH12 the queue is limited, and closing rejects queued requests", async () => {
  await using maker = new ProcessThumbnailMaker();
  const gate = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
  const spec = { width: 1, height: 1, fit: "contain" } as const;
  const count = storageLimits.thumbnailsAtOnceMax + storageLimits.thumbnailsQueuedMax;
  const all = Array.from({ length: count }, () => maker.make(() => gate.promise, spec));
  assert.throws(() => maker.make(() => gate.promise, spec), { code: "overloaded" });
  const settled = Promise.allSettled(all);
  await maker[Symbol.asyncDispose]();
  gate.resolve(new Uint8Array(0));
  assert.ok(
    (await settled).every((result) => result.status === "rejected" && result.reason.code === "unavailable"),
  );
});

Deno.test("TH12 a stalled image does not block others for long", async () => {
  await using maker = new ProcessThumbnailMaker({ timeoutMs: 20 });
  const spec = { width: 1, height: 1, fit: "contain" } as const;
  const never = new Promise<Uint8Array<ArrayBuffer>>(() => {});
  const stuck = Array.from(
    { length: storageLimits.thumbnailsAtOnceMax },
    () => maker.make(() => never, spec),
  );
  const next = maker.make(() => Promise.resolve(Uint8Array.of(0xff, 0xd8, 0xff)), spec);
  for (const result of await Promise.allSettled(stuck)) {
    assert.ok(result.status === "rejected" && result.reason.code === "unavailable");
  }
  // Its turn has come, although no process starts in this time.
  await assert.rejects(next, { code: "overloaded" });
});
