/** A running server streams a bundle of 64 MiB instead of keeping it in memory, and refuses a larger one. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { readBundle } from "../../../mod/ops/deploy/mod.ts";
import { deployLimits } from "../../../mod/ops/limits.ts";
import { Child } from "../../support/processes/child.ts";
import { peakMemory } from "../../support/processes/process_tree.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { firstApp, password } from "./support.ts";

const MiB = 1024 * 1024;
/** Allowed memory of main besides the bundle, for any size: chunks in transit, and garbage among them. */
const MORE_MAX = 120 * MiB;

/** A frontend of this many incompressible files of 16 MiB. */
async function writeApp(folder: string, files: number): Promise<void> {
  for (const [name, text] of Object.entries(firstApp)) {
    const path = join(folder, name);
    await Deno.mkdir(join(path, ".."), { recursive: true });
    await Deno.writeTextFile(path, text);
  }
  await Deno.mkdir(join(folder, "public"));
  for (let file = 0; file < files; file++) {
    await Deno.writeFile(join(folder, "public", `${file}.bin`), randomFillSync(Buffer.alloc(16 * MiB)));
  }
}

Deno.test("[DP6] 64 MiB are deployed in bounded memory, and larger bundles are rejected with one line", async (t) => {
  await using folder = new TempFolder();
  await writeApp(folder.at("app"), 4);
  await using server = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --port 0 --host 127.0.0.1 --data".split(" "),
      folder.at("data"),
    ],
  });
  const [[url], [, setup]] = await Promise.all([
    server.line(/http:\/\/127\.0\.0\.1:\d+/),
    server.line(/#\w+=(\S+)/),
  ]);
  const post = async (path: string, init: RequestInit & { readonly method: string }) => {
    const response = await fetch(`${url}${path}`, init);
    return { status: response.status, body: await response.json() };
  };
  const made = await post("/api/auth/admin/setup", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: setup, email: "root@example.com", password }),
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  const headers = { Authorization: `Bearer ${made.body.accessToken}` };
  const put = (body: ReadableStream<Uint8Array>, more: HeadersInit = {}) =>
    post("/api/admin/functions", {
      method: "PUT",
      headers: { ...headers, ...more },
      body: body as ReadableStream<Uint8Array<ArrayBuffer>>,
    });

  await t.step("[DP1] it is served, and the main process kept only chunks of it in memory", async () => {
    const bundle = await readBundle({
      functionsDir: folder.at("app", "functions"),
      staticDir: folder.at("app", "public"),
      dataDir: folder.at("app", "data"),
    });
    const before = await peakMemory(server.pid);
    const { status, body } = await put(bundle.packed());
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.swapped, true);
    const more = await peakMemory(server.pid) - before;
    assert.ok(more < MORE_MAX, `main took ${(more / MiB).toFixed(0)} MiB more`);
    const file = await (await fetch(`${url}/3.bin`)).bytes();
    assert.ok(Buffer.from(file).equals(await Deno.readFile(folder.at("app", "public", "3.bin"))));
  });

  await t.step("[DP6] an oversized bundle is rejected immediately without leftovers", async () => {
    const { hostname, port } = new URL(url);
    using connection = await Deno.connect({ hostname, port: Number(port) });
    const lines = [
      "PUT /api/admin/functions HTTP/1.1",
      `Host: ${hostname}:${port}`,
      `Authorization: ${headers.Authorization}`,
      `Content-Length: ${deployLimits.bundleBytesMax + 1}`,
    ];
    await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\nbegun`));
    let answer = "";
    const decoder = new TextDecoder();
    const buffer = new Uint8Array(4_096);
    while (!answer.endsWith("}}")) {
      const count = await connection.read(buffer);
      if (count === null) break;
      answer += decoder.decode(buffer.subarray(0, count), { stream: true });
    }
    assert.match(answer, /^HTTP\/1\.1 413 [^]*"code":"body_too_large"/);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(folder.at("data", "incoming"))), []);
    assert.equal((await fetch(`${url}/0.bin`, { method: "HEAD" })).status, 200);
  });

  await t.step("[DP6] a file that is too large is reported before anything is sent", async () => {
    await using large = await Deno.open(folder.at("app", "public", "huge.bin"), {
      write: true,
      createNew: true,
    })
      .then((file) => ({ file, [Symbol.asyncDispose]: () => Promise.resolve(file.close()) }));
    await large.file.truncate(deployLimits.fileBytesMax + 1);
    await assert.rejects(
      readBundle({
        functionsDir: folder.at("app", "functions"),
        staticDir: folder.at("app", "public"),
        dataDir: folder.at("app", "data"),
      }),
      /huge\.bin/,
    );
  });
});
