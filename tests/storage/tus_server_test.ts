/** Resumable uploads on a real server with the protocol's client: unreliable connections, kills, and concurrency. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { type DetailedError, type HttpResponse, Upload, type UploadOptions } from "tus-js-client";
import { resumableLimits } from "../../mod/storage/limits.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { FaultProxy } from "../client/support/fault_proxy.ts";
import { resumable } from "./support/tus.ts";
import { statIfThere } from "../../mod/kit/durable_files.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { until } from "../support/waiting.ts";

const functions = "tests/storage/functions";
const MiB = 1024 * 1024;

/** Bytes without repetition. */
function contentsOf(size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(size).map((_, at) => (at * 7919) >> 5);
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function endpointOf(server: ServerProcess, port = server.port): Promise<string> {
  return `http://127.0.0.1:${port}${resumable(String(await server.call("mutation", "files:generate")))}`;
}

/** An upload with the client's own retries; resolves with the last response. */
function send(
  contents: Uint8Array,
  options: UploadOptions,
): { readonly upload: Upload; readonly done: Promise<HttpResponse> } {
  const { promise: done, resolve, reject } = Promise.withResolvers<HttpResponse>();
  const upload = new Upload(Buffer.from(contents), {
    retryDelays: Array.from({ length: 50 }, () => 50),
    storeFingerprintForResuming: false,
    ...options,
    onSuccess: ({ lastResponse }) => resolve(lastResponse),
    onError: reject,
  });
  upload.start();
  return { upload, done };
}

async function read(server: ServerProcess, id: string | undefined): Promise<Uint8Array> {
  const response = await fetch(`http://127.0.0.1:${server.port}/api/storage/${id}`);
  assert.equal(response.status, 200);
  return await response.bytes();
}

Deno.test({
  name: "the protocol's own client uploads",
  // The client keeps connections open.
  sanitizeResources: false,
  fn: async (t) => {
    await using dataFolder = new TempFolder();
    const dataDir = dataFolder.path;
    await using server = await ServerProcess.start({
      dataDir,
      functions,
      flags: ["--upload-max-bytes", "64MiB"],
    });

    await t.step("RU1 in one piece and in several, with a name and a type", async () => {
      const contents = contentsOf(3 * MiB + 17);
      for (const chunkSize of [Infinity, MiB]) {
        const { done } = send(contents, {
          endpoint: await endpointOf(server),
          chunkSize,
          metadata: { filename: "größe.bin", filetype: "application/x-test" },
        });
        const id = (await done).getHeader("Syncline-Storage-Id");
        assert.deepEqual(await read(server, id), contents);
        const head = await fetch(`http://127.0.0.1:${server.port}/api/storage/${id}`, { method: "HEAD" });
        assert.equal(head.headers.get("content-type"), "application/x-test");
        assert.match(head.headers.get("content-disposition") ?? "", /gr%C3%B6%C3%9Fe\.bin/);
        assert.equal(head.headers.get("etag"), `"${sha256(contents)}"`);
      }
    });

    await t.step("RU2 over a connection that breaks repeatedly", async () => {
      await using proxy = new FaultProxy(server.port);
      const contents = contentsOf(24 * MiB);
      let sent = 0;
      const faults = setInterval(() => proxy.strike(sent++ % 2 === 0 ? "cut" : "loseAnswers", 0), 40);
      try {
        let failures = 0;
        const { done } = send(contents, {
          endpoint: await endpointOf(server, proxy.port),
          chunkSize: 8 * MiB,
          // However fast the machine is, three requests fail.
          onProgress: () => {
            if (failures < 3) proxy.strike("cut", 0);
          },
          onShouldRetry: () => {
            failures++;
            if (failures === 6) clearInterval(faults);
            return true;
          },
        });
        const id = (await done).getHeader("Syncline-Storage-Id");
        assert.deepEqual(await read(server, id), contents);
        assert.ok(failures >= 3, `${failures} failures`);
      } finally {
        clearInterval(faults);
      }
    });

    await t.step("RU5 two clients of one upload do not mix their bytes", async () => {
      const contents = contentsOf(8 * MiB);
      const endpoint = await endpointOf(server);
      const answers = await Promise.allSettled(
        [0, 1].map(() => send(contents, { endpoint, chunkSize: MiB }).done),
      );
      const ids = answers.map((answer) =>
        answer.status === "fulfilled" ? answer.value.getHeader("Syncline-Storage-Id") : undefined
      );
      const [id = assert.fail("neither was answered"), ...others] = ids.filter((id) => id !== undefined);
      assert.ok(others.every((other) => other === id));
      assert.deepEqual(await read(server, id), contents);
    });

    await t.step("RU9 and cancels an upload", async () => {
      const { upload, done } = send(contentsOf(8 * MiB), {
        endpoint: await endpointOf(server),
        chunkSize: MiB,
        onChunkComplete: () => void upload.abort(true).then(() => aborted.resolve(), aborted.reject),
      });
      const aborted = Promise.withResolvers<void>();
      done.catch(() => {});
      await aborted.promise;
      assert.deepEqual([...Deno.readDirSync(join(dataDir, "storage", "resumable"))], []);
    });

    await t.step("RU7 and reports a file that is too large", async () => {
      const { done } = send(contentsOf(64 * MiB + 1), { endpoint: await endpointOf(server) });
      await assert.rejects(done, (error: DetailedError) => error.originalResponse?.getStatus() === 413);
    });
    await server.stop();
  },
});

Deno.test({
  name: "RU3 kill -9 during an upload loses nothing that was acknowledged, and little else",
  sanitizeResources: false,
  fn: async () => {
    const dataDir = await Deno.makeTempDir();
    const flags = ["--upload-max-bytes", "128MiB"];
    const contents = contentsOf(5 * resumableLimits.checkpointBytes + 4321);
    let server = await ServerProcess.start({ dataDir, functions, flags });
    try {
      const { port } = server;
      const endpoint = await endpointOf(server);
      const offsets: number[] = [];
      let certain = 0;
      const spool = join(dataDir, "storage", "resumable");
      const arrived = async () => {
        let bytes = 0;
        for await (const { name } of Deno.readDir(spool)) {
          if (name.endsWith(".part")) bytes += (await statIfThere(join(spool, name)))?.size ?? 0;
        }
        return bytes;
      };
      let isUploaded = false;
      const kills = (async () => {
        for (const bytes of [MiB, 40 * MiB, 70 * MiB]) {
          await until(async () => isUploaded || await arrived() >= bytes, { everyMs: 1 });
          // On a busy machine the upload may finish between two checks.
          if (isUploaded) return;
          await server.kill();
          // The saved progress, plus the save in progress.
          certain = bytes - resumableLimits.checkpointBytes - MiB;
          server = await ServerProcess.start({ dataDir, functions, flags, port });
        }
      })();
      const { done } = send(contents, {
        endpoint,
        // One piece for all: only the server's own saves are kept.
        // Each attempt keeps all contents in memory, so only a few run while the server starts.
        retryDelays: Array.from({ length: 120 }, () => 500),
        onAfterResponse(_, response) {
          const offset = response.getHeader("Upload-Offset");
          if (offset === undefined) return;
          assert.ok(Number(offset) >= Math.max(certain, offsets.at(-1) ?? 0), "what is certain is there");
          offsets.push(Number(offset));
        },
      });
      const last = await done.finally(() => isUploaded = true);
      await kills;
      const id = last.getHeader("Syncline-Storage-Id");
      const stored = await read(server, id);
      assert.equal(sha256(stored), sha256(contents));
      assert.ok(offsets.some((offset) => offset > 0 && offset < contents.length), "resumed in the middle");
      const { headers } = await fetch(`http://127.0.0.1:${server.port}/api/storage/${id}`, {
        method: "HEAD",
      });
      assert.equal(headers.get("etag"), `"${sha256(contents)}"`);
      assert.deepEqual([...Deno.readDirSync(join(dataDir, "storage", "resumable"))], []);
    } finally {
      await server[Symbol.asyncDispose]();
      await Deno.remove(dataDir, { recursive: true });
    }
  },
});

Deno.test({
  name: "RU3 a stopping server keeps the bytes of running uploads",
  sanitizeResources: false,
  fn: async () => {
    const dataDir = await Deno.makeTempDir();
    const contents = contentsOf(2 * MiB);
    let server = await ServerProcess.start({ dataDir, functions });
    try {
      const url = await endpointOf(server);
      const headers = { "Tus-Resumable": "1.0.0" };
      const begun = await fetch(url, {
        method: "POST",
        headers: { ...headers, "Upload-Length": String(contents.length) },
      });
      const location = begun.headers.get("location") ?? "";
      const { readable, writable } = new TransformStream<Uint8Array<ArrayBuffer>>();
      const writer = writable.getWriter();
      const patch = fetch(new URL(location, url), {
        method: "PATCH",
        body: readable,
        headers: { ...headers, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream" },
      }).then((response) => response.body?.cancel(), () => {});
      await writer.write(contents.slice(0, MiB));
      const part = join(dataDir, "storage", "resumable");
      const arrived = () =>
        [...Deno.readDirSync(part)].some(({ name }) => Deno.statSync(join(part, name)).size >= MiB);
      await until(arrived);
      await server.stop();
      await writer.abort().catch(() => {});
      await patch;
      server = await ServerProcess.start({ dataDir, functions });
      const again = new URL(location, `http://127.0.0.1:${server.port}`);
      const head = await fetch(again, { method: "HEAD", headers });
      assert.equal(head.headers.get("upload-offset"), String(MiB));
    } finally {
      await server[Symbol.asyncDispose]();
      await Deno.remove(dataDir, { recursive: true });
    }
  },
});
