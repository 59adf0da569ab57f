import assert from "node:assert/strict";
import { join } from "node:path";
import { Maintenance } from "../../mod/ops/maintenance/mod.ts";
import { RestoreError, type StagedRestore } from "../../mod/ops/backups/restore/mod.ts";
import { spoolBody } from "../../mod/ops/spooled_body.ts";
import { opsLimits } from "../../mod/ops/limits.ts";
import { petabyteArchive } from "./archive/archives.ts";
import { errorOf, startAdminApp } from "./support/admin_app.ts";
import { writeTestArchive } from "./support/archives.ts";
import { DataFolder } from "./support/data_folders.ts";
import { TempFolder } from "../support/temp_folder.ts";

const staged: StagedRestore = {
  createdAt: "2030-01-01T00:00:00.000Z",
  stagedAt: "2030-01-02T00:00:00.000Z",
  ts: 7,
  tables: 1,
  documents: 2,
  parts: ["database"],
  source: "a.tar.zst",
};

async function isEmpty(folder: string): Promise<boolean> {
  return (await Array.fromAsync(Deno.readDir(folder))).length === 0;
}

Deno.test("[AD8] a backup of this server is staged by its name", async () => {
  const asked: unknown[] = [];
  await using app = await startAdminApp({
    restores: {
      stage(options) {
        asked.push(options);
        return Promise.resolve(staged);
      },
    },
  });
  const archive = join(app.backupsDir, "a.tar.zst");
  await writeTestArchive(archive);
  const response = await app.request("/backups/a.tar.zst/restore", { method: "POST" });
  assert.deepEqual([response.status, await response.json()], [200, { restore: staged }]);
  assert.deepEqual(asked, [{ archive, source: "a.tar.zst" }]);
  assert.deepEqual(app.logged.map(({ fields }) => fields), [
    {
      adminId: (await app.accounts.identityOf(app.adminToken)).adminId,
      source: "a.tar.zst",
      ts: 7,
    },
  ]);
});

Deno.test("[AD8] a backup deleted while its staging is queued is not found", async () => {
  await using app = await startAdminApp({
    restores: {
      async stage({ archive }) {
        await Deno.remove(archive);
        throw new RestoreError(`There is no file "${archive}"`, { fault: "archive" });
      },
    },
  });
  await writeTestArchive(join(app.backupsDir, "a.tar.zst"));
  const { status, code, message } = await errorOf(
    await app.request("/backups/a.tar.zst/restore", { method: "POST" }),
  );
  assert.deepEqual([status, code], [404, "not_found"]);
  assert.ok(!message.includes(app.backupsDir), message);
});

Deno.test("[AD9] an archive in the body is received, staged under its name and not kept", async () => {
  const sent = crypto.getRandomValues(new Uint8Array(50_000));
  const asked: unknown[] = [];
  await using app = await startAdminApp({
    restores: {
      async stage({ archive, source }) {
        asked.push(source, await Deno.readFile(archive), (await Deno.stat(archive)).mode! & 0o777);
        return staged;
      },
    },
  });
  const response = await app.request("/restore?name=my%20backup.tar.zst", { method: "POST", body: sent });
  assert.deepEqual([response.status, await response.json()], [200, { restore: staged }]);
  assert.deepEqual(asked, ["my backup.tar.zst", sent, 0o600]);
  assert.ok(await isEmpty(app.incomingDir));
});

Deno.test("[AD9] the archive name is required and bounded", async () => {
  await using app = await startAdminApp();
  for (
    const query of ["", "?name=", "?name=a%0Ab", `?name=${"a".repeat(opsLimits.archiveSourceCharsMax + 1)}`]
  ) {
    const { status, code } = await errorOf(
      await app.request(`/restore${query}`, { method: "POST", body: "x" }),
    );
    assert.deepEqual([status, code], [400, "bad_request"], query);
  }
});

Deno.test("[AD9] two archives are not received concurrently", async () => {
  const first = Promise.withResolvers<StagedRestore>();
  const called = Promise.withResolvers<void>();
  await using app = await startAdminApp({
    restores: {
      stage() {
        called.resolve();
        return first.promise;
      },
    },
  });
  const upload = () => app.request("/restore?name=a", { method: "POST", body: new Uint8Array(1) });
  const response = upload();
  await called.promise;
  const { status, code } = await errorOf(await upload());
  assert.deepEqual([status, code], [503, "overloaded"]);
  first.resolve(staged);
  assert.equal((await response).status, 200);
  assert.equal((await upload()).status, 200);
});

Deno.test("[AD10] a bad archive is rejected with the reason; other failures are not blamed on it", async () => {
  for (
    const [error, expected] of [
      [new RestoreError("The table x is damaged", { fault: "archive" }), [
        400,
        "invalid_backup",
        "The table x is damaged",
      ]],
      [new RestoreError("No room", { fault: "room" }), [507, "disk_full", "No room"]],
      [new Error("I/O error"), [500, "restore_failed", "Cannot stage the restore: I/O error"]],
    ] as const
  ) {
    await using app = await startAdminApp({ restores: { stage: () => Promise.reject(error) } });
    await writeTestArchive(join(app.backupsDir, "a.tar.zst"));
    for (
      const [path, init] of [
        ["/backups/a.tar.zst/restore", {}],
        ["/restore?name=a", { body: new Uint8Array(10) }],
      ] as const
    ) {
      const { status, code, message } = await errorOf(await app.request(path, { method: "POST", ...init }));
      assert.deepEqual([status, code, message], expected);
    }
    assert.ok(await isEmpty(app.incomingDir));
  }
});

Deno.test("[AD10] the cause of a failure is passed on by the maintenance process", async () => {
  await using folder = await DataFolder.make();
  await using maintenance = new Maintenance({ dataDir: folder.path, log: () => {} });
  await using app = await startAdminApp({
    dataDir: folder.path,
    restores: { stage: (options) => maintenance.stage(options) },
  });
  const refusal = async (body: BodyInit) => {
    const { status, code, message } = await errorOf(
      await app.request("/restore?name=a", { method: "POST", body }),
    );
    return `${status} ${code} ${message}`;
  };
  assert.match(await refusal(new Uint8Array(10)), /^400 invalid_backup /);
  assert.match(
    await refusal(await petabyteArchive()),
    /^507 disk_full Not enough disk space to unpack/,
  );
  await Deno.mkdir(folder.at("restore-staged"));
  using staging = await Deno.open(folder.at("restore-staged"));
  assert.ok(await staging.tryLock(true));
  assert.match(await refusal(new Uint8Array(10)), /^500 restore_failed .*Another restore is being staged/);
});

Deno.test("[AD11] a staged restore is shown and can be canceled", async () => {
  let now: StagedRestore | null = staged;
  await using app = await startAdminApp({
    restores: {
      staged: () => Promise.resolve(now),
      cancel() {
        const was = now !== null;
        now = null;
        return Promise.resolve(was);
      },
    },
  });
  const get = async (path: string) => await (await app.request(path)).json();
  assert.deepEqual(await get("/restore"), { restore: staged });
  assert.deepEqual((await get("/backups")).restore, staged);
  const cancel = async () => await (await app.request("/restore", { method: "DELETE" })).json();
  assert.deepEqual(await cancel(), { cancelled: true });
  assert.deepEqual(await get("/restore"), { restore: null });
  assert.deepEqual(await cancel(), { cancelled: false });
  assert.equal(app.logged.length, 1);
});

Deno.test("[AD11] an unreadable marker is reported to the administrator", async () => {
  const unreadable = () => Promise.reject(new RestoreError("Cannot understand the marker"));
  await using app = await startAdminApp({ restores: { staged: unreadable, cancel: unreadable } });
  for (const method of ["GET", "DELETE"]) {
    const { status, code, message } = await errorOf(await app.request("/restore", { method }));
    assert.deepEqual([status, code, message], [500, "restore_failed", "Cannot understand the marker"]);
  }
  const list = await app.request("/backups");
  assert.deepEqual([list.status, await list.json()], [200, {
    backups: [],
    newest: null,
    restore: { error: "Cannot understand the marker" },
    replication: { enabled: false },
  }]);
});

/** A request with this stream as body. */
const requestOf = (body: ReadableStream<Uint8Array<ArrayBuffer>>) =>
  new Request("http://localhost/", { method: "POST", body });

async function spoolFails(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  options: Partial<Parameters<typeof spoolBody>[1]>,
): Promise<string> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const path = join(folder, "body");
  const failed = spoolBody(requestOf(body), { path, bytesMax: 1e9, stallMs: 60_000, ...options });
  const { code } = await failed.then(() => assert.fail("it was taken"), (error) => error);
  assert.ok(await isEmpty(folder), "something was left");
  return code;
}

Deno.test("[AD9] a body that is too large, incomplete, stalled or fills the disk leaves nothing", async () => {
  const chunk = () => new Uint8Array(1_000_000);
  const endless = (cancelled?: () => void) =>
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => controller.enqueue(chunk()),
      ...(cancelled && { cancel: cancelled }),
    });
  let cancelled = 0;
  assert.equal(await spoolFails(endless(() => void cancelled++), { bytesMax: 2_500_000 }), "body_too_large");
  let room = opsLimits.diskReserveBytes + 100_000_000;
  const shrinking = () => Promise.resolve(room -= 50_000_000);
  assert.equal(await spoolFails(endless(() => void cancelled++), { freeBytes: shrinking }), "disk_full");
  assert.equal(cancelled, 2, "the body was read on");
  const broken = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      controller.enqueue(chunk());
    },
    pull(controller) {
      controller.error(new Error("connection reset"));
    },
  });
  assert.equal(await spoolFails(broken, {}), "bad_request");
  const still = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.enqueue(chunk()),
  });
  assert.equal(await spoolFails(still, { stallMs: 1 }), "bad_request");
});

Deno.test("[AD9] a slow body is aborted, however long it would take", async () => {
  let cancelled = 0;
  const drip = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
    cancel: () => void cancelled++,
  });
  assert.equal(await spoolFails(drip, { minimumRate: { ms: 5, bytes: 1e9 } }), "upload_failed");
  assert.equal(cancelled, 1, "the body was read on");
});

Deno.test("[AD9] a body with an excessive announced length is not read", async () => {
  const request = new Request("http://localhost/", {
    method: "POST",
    headers: { "Content-Length": "11" },
    body: "01234567890",
  });
  await assert.rejects(spoolBody(request, { path: "/nowhere/at/all", bytesMax: 10, stallMs: 1 }), {
    code: "body_too_large",
  });
  assert.equal(request.bodyUsed, false);
});
