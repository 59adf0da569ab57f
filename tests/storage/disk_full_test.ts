/** Uploads on a full disk are refused with the same code as mutations, and a start reports it. Linux, as root. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { projectDir } from "../support/processes/child.ts";
import { ServerProcess } from "../support/processes/server_process.ts";
import { SmallDisk, smallDiskMissing } from "../ops/replication/small_disk.ts";
import { resumable } from "./support/tus.ts";
import { makeImages } from "./support/images.ts";

const missing = await smallDiskMissing();
const functions = "tests/storage/functions";
const TUS = { "Tus-Resumable": "1.0.0" };

/** `status code` of an answer, and its body otherwise. */
async function answerOf(response: Response): Promise<string> {
  const body = await response.text();
  return response.ok ? String(response.status) : `${response.status} ${JSON.parse(body).errorData.code}`;
}

Deno.test({
  name:
    "UP16 on a full disk uploads of each kind and sign-ups are rejected with 507, and work again once there is space",
  ignore: missing !== null,
  async fn() {
    await using disk = await SmallDisk.mount(128);
    const dataDir = disk.at("data");
    await using server = await ServerProcess.start({ dataDir, functions });
    const origin = `http://127.0.0.1:${server.port}`;
    const urls = await Promise.all(
      Array.from({ length: 6 }, async () => `${origin}${await server.call("mutation", "files:generate")}`),
    );
    const post = async (url = "", bytes: number) =>
      await answerOf(await fetch(url, { method: "POST", body: new Uint8Array(randomBytes(bytes)) }));
    const create = async (url = "", length: number) => {
      const headers = { ...TUS, "Upload-Length": String(length) };
      return await fetch(resumable(url), { method: "POST", headers });
    };
    const begun = await create(urls[0], 4_000_000);
    assert.equal(await answerOf(begun.clone()), "201");
    const location = new URL(begun.headers.get("location") ?? "", origin);
    const append = async () =>
      await answerOf(
        await fetch(location, {
          method: "PATCH",
          headers: { ...TUS, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream" },
          body: new Uint8Array(randomBytes(4_000_000)),
        }),
      );
    const { photo } = await makeImages({ photo: { width: 60, height: 40, format: "jpeg" } });
    const stored = await fetch(urls[1] ?? "", {
      method: "POST",
      body: photo,
      headers: { "Content-Type": "image/jpeg" },
    });
    const { storageId } = await stored.json();
    const signUp = async () =>
      await answerOf(
        await fetch(`${origin}/api/auth/signup`, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ email: `${crypto.randomUUID()}@example.com`, password: "long enough" }),
        }),
      );
    await disk.fill();
    assert.equal(await post(urls[2], 3_000_000), "507 disk_full");
    assert.equal(await post(urls[3], 10), "507 disk_full");
    assert.equal(await answerOf(await create(urls[4], 1_000_000)), "507 disk_full");
    assert.equal(await append(), "507 disk_full");
    assert.equal(await signUp(), "507 disk_full");
    assert.equal(await answerOf(await fetch(`${origin}/api/storage/${storageId}?thumb=50x50`)), "200");
    await disk.makeRoom();
    assert.equal(await post(urls[2], 3_000_000), "200", "the URL was not used up");
    assert.equal(await signUp(), "200");
  },
});

Deno.test({
  name: "OP7 a start on a full disk ends with a one-line message",
  ignore: missing !== null,
  async fn() {
    await using disk = await SmallDisk.mount(32);
    for (const before of ["nothing", "a server"]) {
      const dataDir = disk.at("data");
      if (before === "a server") {
        await disk.makeRoom();
        await using _server = await ServerProcess.start({ dataDir, functions });
      }
      await disk.fill();
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: [
          ..."run --quiet --no-prompt -P=serve main.ts --port 0".split(" "),
          ...["--data", dataDir, "--functions", functions],
        ],
        cwd: projectDir,
        env: { NO_COLOR: "1" },
        stdin: "null",
      }).output();
      const output = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
      assert.equal(code, 1, output);
      assert.match(output, /^[^\n]*disk [^\n]*full[^\n]*\n$/, before);
      assert.ok(output.includes(dataDir), output);
    }
  },
});
