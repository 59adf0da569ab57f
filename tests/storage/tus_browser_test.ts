/** Resumable uploads from a page of another origin in a real browser: with the protocol's client and that of examples/todo. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";
// Installs the package whose browser build the page loads.
import "tus-js-client";
import { ServerProcess } from "../support/processes/server_process.ts";
import { FaultProxy } from "../client/support/fault_proxy.ts";
import { launchChromium } from "../support/chromium.ts";
import { resumable } from "./support/tus.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { chromium, needs } from "../support/services.ts";

const require = createRequire(import.meta.url);

const BYTES = 20 * 1024 * 1024;

/** Contents of the page's files, and the expected bytes. */
function contents(size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(size).map((_, at) => (at * 7919) >> 5);
}

const PAGE = `<!doctype html>
<title>uploads</title>
<script src="/tus.js"></script>
<script type="module">
import { uploadFile } from "/upload_file.js";

/** As a page of the server gets it from there. */
const client = async (url) => {
  const { origin } = new URL(url);
  const { SynclineClient } = await import(origin + "/_/client.js");
  return new SynclineClient(origin);
};

const fileOf = (size) =>
  new File([new Uint8Array(size).map((_, at) => (at * 7919) >> 5)], "größe.bin", { type: "application/x-test" });

globalThis.uploadWithTus = (endpoint, size) =>
  new Promise((resolve, reject) => {
    const file = fileOf(size);
    new tus.Upload(file, {
      endpoint,
      chunkSize: 5 * 1024 * 1024,
      retryDelays: [50, 50, 50, 50, 200, 500, 1000, 2000],
      metadata: { filename: file.name, filetype: file.type },
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader("Syncline-Storage-Id")),
      onError: reject,
    }).start();
  });
globalThis.uploadWithTodo = async (url, size) => {
  const steps = [];
  const { signal } = new AbortController();
  const onProgress = (bytes) => steps.push(bytes);
  const id = await uploadFile(await client(url), { url, file: fileOf(size), onProgress, signal });
  return { id, last: steps.at(-1) };
};
globalThis.refusal = async (url) => {
  const { signal } = new AbortController();
  return await uploadFile(await client(url), { url, file: fileOf(10), onProgress() {}, signal })
    .catch((error) => error.message);
};
</script>`;

/** The page, at another origin than the server. */
function servePage(): { readonly url: string } & AsyncDisposable {
  const files = new Map<string, string | URL>([
    ["/tus.js", join(require.resolve("tus-js-client/package.json"), "../dist/tus.min.js")],
    ["/upload_file.js", new URL("../../examples/todo/public/upload_file.js", import.meta.url)],
  ]);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const path = files.get(new URL(request.url).pathname);
    return path === undefined
      ? new Response(PAGE, { headers: { "Content-Type": "text/html; charset=utf-8" } })
      : new Response(await Deno.readFile(path), { headers: { "Content-Type": "text/javascript" } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test(
  needs(chromium, "RU13 a page of another origin uploads in pieces, over a line that breaks"),
  async () => {
    await using dataFolder = new TempFolder();
    const dataDir = dataFolder.path;
    await using server = await ServerProcess.start({ dataDir, functions: "tests/storage/functions" });
    await using proxy = new FaultProxy(server.port);
    await using origin = servePage();
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await page.goto(origin.url);
      const uploadUrl = async () =>
        `http://127.0.0.1:${proxy.port}${await server.call("mutation", "files:generate")}`;
      let [patches, cuts] = [0, 0];
      await page.route("**/resumable/**", async (route) => {
        if (route.request().method() !== "PATCH" || ++patches % 3 !== 2) return await route.continue();
        await route.continue();
        setTimeout(() => {
          while (proxy.strike("cut", 0)) cuts++;
        }, 10 * patches);
      });
      const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
      const check = async (id: string | undefined, size: number) => {
        const response = await fetch(`http://127.0.0.1:${server.port}/api/storage/${id}`);
        assert.equal(response.headers.get("content-type"), "application/x-test");
        assert.match(response.headers.get("content-disposition") ?? "", /gr%C3%B6%C3%9Fe\.bin/);
        assert.equal(sha256(await response.bytes()), sha256(contents(size)));
      };
      type Run<Result> = (url: string, size: number) => Promise<Result>;
      const withTus = await page.evaluate(
        ([url, size]) =>
          (globalThis as unknown as { uploadWithTus: Run<string> }).uploadWithTus(String(url), Number(size)),
        [resumable(await uploadUrl()), BYTES],
      );
      await check(withTus, BYTES);
      for (const size of [BYTES, 1_000]) {
        const { id, last } = await page.evaluate(
          ([url, size]) =>
            (globalThis as unknown as { uploadWithTodo: Run<{ id: string; last: number }> })
              .uploadWithTodo(String(url), Number(size)),
          [await uploadUrl(), size],
        );
        await check(id, size);
        assert.equal(last, size);
      }
      const message = await page.evaluate(
        (url) => (globalThis as unknown as { refusal(url: string): Promise<string> }).refusal(url),
        `${await uploadUrl()}x`,
      );
      assert.equal(message, "The upload URL is not valid");
      assert.ok(cuts > 1, `${cuts} connections were cut`);
    } finally {
      await browser.close();
      await server.stop();
    }
  },
);
