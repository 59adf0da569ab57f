/** Files on a real server, over real connections, with kills of both sides. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { childrenOf, commandLine } from "../support/processes/process_tree.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { makeImages, measure } from "./support/images.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { repeats } from "../support/long_runs.ts";
import { pause, until } from "../support/waiting.ts";

const functions = "tests/storage/functions";

async function start(dataDir: string, flags: readonly string[] = []): Promise<ServerProcess> {
  return await ServerProcess.start({ dataDir, functions, flags });
}

async function upload(server: ServerProcess, body: BodyInit, type?: string): Promise<Response> {
  const url = `http://127.0.0.1:${server.port}${await server.call("mutation", "files:generate")}`;
  return await fetch(url, {
    method: "POST",
    body,
    ...(type !== undefined && { headers: { "Content-Type": type } }),
  });
}

function readUrl(server: ServerProcess, id: string): string {
  return `http://127.0.0.1:${server.port}/api/storage/${id}`;
}

async function blobsIn(dataDir: string): Promise<string[]> {
  const found: string[] = [];
  for await (const shard of Deno.readDir(join(dataDir, "storage"))) {
    if (!/^[0-9a-f]{2}$/.test(shard.name)) continue;
    for await (const { name } of Deno.readDir(join(dataDir, "storage", shard.name))) {
      found.push(join(dataDir, "storage", shard.name, name));
    }
  }
  return found;
}

Deno.test("files over real connections", async (t) => {
  const dataDir = await Deno.makeTempDir();
  const server = await start(dataDir, ["--upload-max-bytes", "3MiB"]);
  try {
    await t.step(
      "UP7 FR10 uploads are read in full and in ranges while other clients disconnect",
      async () => {
        const contents = new Uint8Array(randomBytes(3_000_000));
        const { storageId: id } = await (await upload(server, contents, "application/x-test")).json();
        const whole = await fetch(readUrl(server, id));
        assert.deepEqual(await whole.bytes(), contents);
        assert.equal(whole.headers.get("etag"), `"${sha256Of(contents)}"`);
        const part = await fetch(readUrl(server, id), { headers: { Range: "bytes=1000-1999999" } });
        assert.deepEqual(await part.bytes(), contents.slice(1_000, 2_000_000));
        for (let count = 0; count < 20; count++) {
          const controller = new AbortController();
          const headers = count % 2 === 0 ? {} : { Range: "bytes=0-1000000,1500000-" };
          const response = await fetch(readUrl(server, id), { signal: controller.signal, headers });
          const reader = response.body?.getReader();
          await reader?.read();
          controller.abort();
          await reader?.cancel().catch(() => {});
        }
        // The server notices a disconnect when the system reports it.
        let open = 0;
        await until(async () => (open = await openBlobs(server)) === 0, {
          what: () => `${open} files are still open`,
        });
      },
    );

    await t.step("UP7 a file over the limit is rejected with its status, announced or not", async () => {
      const large = new Uint8Array(3 * 1024 * 1024 + 1);
      const announced = await upload(server, large);
      assert.equal(announced.status, 413);
      assert.equal((await announced.json()).errorData.code, "file_too_large");
      const chunked = await upload(server, new Blob([large]).stream());
      assert.equal(chunked.status, 413);
      await chunked.body?.cancel();
    });

    await t.step("FR1 pages of other origins may read files and errors", async () => {
      const { storageId: id } = await (await upload(server, "hello")).json();
      for (const [path, status] of [[id, 200], [`${id}?thumb=5`, 415], ["none", 404]] as const) {
        const response = await fetch(readUrl(server, path), {
          headers: { Origin: "https://app.example.com" },
        });
        await response.body?.cancel();
        assert.equal(response.status, status);
        assert.equal(response.headers.get("access-control-allow-origin"), "*");
        assert.match(response.headers.get("access-control-expose-headers") ?? "", /Content-Range,ETag/);
        assert.equal(response.headers.get("x-content-type-options"), "nosniff");
      }
      const outside = await fetch(readUrl(server, id), { headers: { Range: "bytes=9-" } });
      assert.equal(outside.status, 416);
      assert.equal(outside.headers.get("access-control-allow-origin"), "*");
      await outside.body?.cancel();
    });

    await t.step("FS5 an action stores and gets contents", async () => {
      const { storageId: id } = await (await upload(server, new Uint8Array(1_500_000))).json();
      const response = await fetch(`http://127.0.0.1:${server.port}/api/action`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ path: "files:copy", args: { id } }),
      });
      const { value } = await response.json();
      assert.equal(value.size, 1_500_000);
      assert.equal(
        (await fetch(readUrl(server, value.id), { method: "HEAD" })).headers.get("content-length"),
        "1500000",
      );
    });

    await t.step("FR5 a signed URL of an isolate opens the file", async () => {
      const { storageId: id } = await (await upload(server, "signed")).json();
      const url = await server.call("query", "files:signedUrl", { id });
      assert.equal(await (await fetch(`http://127.0.0.1:${server.port}${url}`)).text(), "signed");
      const other = `http://127.0.0.1:${server.port}${url}x`;
      assert.equal((await (await fetch(other)).json()).errorData.code, "invalid_signature");
    });

    await t.step(
      "TH1 TH13 thumbnails are made by a server with its own permissions, which starts the process on demand",
      async () => {
        const imageProcesses = async () => {
          const lines = await Promise.all((await childrenOf(server.pid)).map(commandLine));
          return lines.filter((line) => line?.includes("thumbnails/process.ts")).length;
        };
        assert.equal(await imageProcesses(), 0);
        const { png } = await makeImages({ png: { width: 100, height: 50, format: "png" } });
        const { storageId: id } = await (await upload(server, png, "image/png")).json();
        const thumbnail = await fetch(`${readUrl(server, id)}?thumb=20`);
        assert.equal(thumbnail.headers.get("content-type"), "image/jpeg");
        const [measured] = await measure([await thumbnail.bytes()]);
        assert.equal(measured?.size, "20x10");
        assert.equal(await imageProcesses(), 1);
      },
    );
  } finally {
    await server[Symbol.asyncDispose]();
    await Deno.remove(dataDir, { recursive: true });
  }
});

/** Files below `storage/` that the main process has open. */
async function openBlobs(server: ServerProcess): Promise<number> {
  const { stdout } = await new Deno.Command("ls", { args: ["-l", `/proc/${server.pid}/fd`], stderr: "null" })
    .output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line.includes("/storage/")).length;
}

/** Number of kills. */
const rounds = repeats(2, 50);
const UPLOADS = 200;
/** Maximum consecutive kills that interrupt no upload. */
const LATE_MAX = 5;
/** Clients are distinguished by address, so uploads beyond one client's burst use several. */
const CLIENTS = 8;
const BYTES_MIN = 50_000;
const BYTES_STEP = 1_000;

interface Sent {
  readonly url: string;
  readonly contents: Uint8Array<ArrayBuffer>;
}

/** Uploads all files concurrently, recording the hash of each confirmed one. Returns the others. */
async function uploadAll(
  server: ServerProcess,
  { sent, answered }: { readonly sent: readonly Sent[]; readonly answered: Map<string, string> },
): Promise<Sent[]> {
  const outcomes = await Promise.allSettled(sent.map(async ({ url, contents }, at) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${url}`, {
      method: "POST",
      body: contents,
      headers: { "X-Forwarded-For": `203.0.113.${at % CLIENTS}` },
    });
    const { storageId } = await response.json();
    answered.set(storageId, sha256Of(contents));
  }));
  return sent.filter((_, at) => outcomes[at]?.status === "rejected");
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

Deno.test("UP14 kill -9 during 200 uploads leaves complete files or nothing, and loses no confirmed file or URL", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  const answered = new Map<string, string>();
  let interrupted: readonly Sent[] = [];
  let repeated = 0;
  let late = 0;
  for (let round = 0; round <= rounds;) {
    const server = await start(dataDir, ["--trusted-proxy", "127.0.0.1"]);
    try {
      for (const [id, sha256] of answered) {
        const bytes = await (await fetch(readUrl(server, id))).bytes();
        assert.equal(sha256Of(bytes), sha256, `round ${round}`);
      }
      // The URL of an aborted upload can be used again; one whose response was lost reports that it was used.
      // Those that were sent last are likely to be aborted.
      for (const { url, contents } of new Set([...interrupted.slice(0, 10), ...interrupted.slice(-10)])) {
        const response = await fetch(`http://127.0.0.1:${server.port}${url}`, {
          method: "POST",
          body: contents,
        });
        const { storageId, errorData } = await response.json();
        if (response.ok) {
          answered.set(storageId, sha256Of(contents));
          repeated++;
        } else assert.equal(errorData.code, "upload_url_used", `round ${round}`);
      }
      if (round === rounds) break;
      const urls = await Promise.all(
        Array.from({ length: UPLOADS }, () => server.call("mutation", "files:generate")),
      );
      const sent = urls.map((url, at) => ({
        url: String(url),
        contents: new Uint8Array(BYTES_MIN + at * BYTES_STEP).fill(at + round),
      }));
      const before = answered.size;
      const unanswered = uploadAll(server, { sent, answered });
      // The kill happens during the commits of the uploads.
      while (answered.size < before + 3 + round * 25 % 150) {
        await pause(1);
      }
      await server.kill();
      interrupted = await unanswered;
      // On a busy machine all may be answered before the kill. Then the round is repeated.
      if (interrupted.length === 0) assert.ok(++late <= LATE_MAX, "each kill came too late");
      else {
        late = 0;
        round++;
      }
    } finally {
      await server[Symbol.asyncDispose]();
    }
    // Every blob is complete: its length is one of those sent and all its bytes are equal.
    for (const path of await blobsIn(dataDir)) {
      const bytes = await Deno.readFile(path);
      assert.equal((bytes.length - BYTES_MIN) % BYTES_STEP, 0, path);
      assert.ok(bytes.every((byte) => byte === bytes[0]), path);
    }
  }
  assert.ok(answered.size > 3 * rounds && repeated > 0);
  assert.deepEqual([...Deno.readDirSync(join(dataDir, "storage", "tmp"))], []);
});
