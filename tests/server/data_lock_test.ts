import assert from "node:assert/strict";
import { join } from "node:path";
import { DataLock, DataLockedError } from "../../mod/server/data/data_lock.ts";
import { StartError } from "../../mod/config/start_error.ts";

async function temporary(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.makeTempDir();
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

Deno.test("the data folder is created for its owner only, with parent folders", async () => {
  await using dir = await temporary();
  const data = join(dir.path, "a", "b");
  using _lock = await DataLock.acquire(data, { by: "serve" });
  assert.equal(((await Deno.stat(data)).mode ?? 0) & 0o777, 0o700);
  assert.equal(((await Deno.stat(join(data, "lock"))).mode ?? 0) & 0o777, 0o600);
});

Deno.test("a locked folder is refused with the process that locked it", async () => {
  await using dir = await temporary();
  const first = await DataLock.acquire(dir.path, { by: "serve" });
  await assert.rejects(DataLock.acquire(dir.path, { by: "serve" }), (error) => {
    assert.ok(error instanceof StartError);
    assert.match(error.message, new RegExp(`process ${Deno.pid}\\)`));
    return true;
  });
  first[Symbol.dispose]();
  using _second = await DataLock.acquire(dir.path, { by: "serve" });
});

Deno.test("a longer process id in the file is overwritten", async () => {
  await using dir = await temporary();
  await Deno.writeTextFile(join(dir.path, "lock"), "99999999999999\n");
  using _lock = await DataLock.acquire(dir.path, { by: "serve" });
  assert.equal(await Deno.readTextFile(join(dir.path, "lock")), `${Deno.pid} serve\n`);
});

Deno.test("the lock of a killed process is free immediately", async () => {
  await using dir = await temporary();
  const holder = new Deno.Command(Deno.execPath(), {
    args: [
      "eval",
      `import { DataLock } from ${
        JSON.stringify(new URL("../../mod/server/data/data_lock.ts", import.meta.url).href)
      };
       globalThis.lock = await DataLock.acquire(${JSON.stringify(dir.path)}, { by: "serve" });
       console.log("held");
       setInterval(() => {}, 1000);`,
    ],
    stdout: "piped",
  }).spawn();
  const reader = holder.stdout.getReader();
  await reader.read();
  await assert.rejects(DataLock.acquire(dir.path, { by: "serve" }), new RegExp(`process ${holder.pid}\\)`));
  holder.kill("SIGKILL");
  await holder.status;
  await reader.cancel();
  using _lock = await DataLock.acquire(dir.path, { by: "serve" });
});

Deno.test("a folder that cannot be created or used is a StartError that names it", async () => {
  await using dir = await temporary();
  const file = join(dir.path, "file");
  await Deno.writeTextFile(file, "");
  await assert.rejects(DataLock.acquire(file, { by: "serve" }), StartError);
  await assert.rejects(DataLock.acquire(join(file, "below"), { by: "serve" }), StartError);
  await Deno.mkdir(join(dir.path, "lock"));
  await assert.rejects(DataLock.acquire(dir.path, { by: "serve" }), StartError);
});

Deno.test({
  name: "a data folder that the system makes read-only is refused without advice on flags",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const error = await DataLock.acquire("/proc/nope", { by: "serve" }).then(
      () => assert.fail("it was taken"),
      (error) => error,
    );
    assert(error instanceof StartError);
    assert.equal(
      error.message,
      'Cannot create the data folder "/proc/nope": this process has no permission to use it',
    );
  },
});

Deno.test("the holder of a folder is named, and only a server is called one", async () => {
  await using dir = await temporary();
  for (
    const [by, message, byServer] of [
      ["import", `The command import (process ${Deno.pid}) is using`, false],
      ["serve", `Another server (process ${Deno.pid}) is using`, true],
    ] as const
  ) {
    using _held = await DataLock.acquire(dir.path, { by });
    await assert.rejects(DataLock.acquire(dir.path, { by: "backup" }), (error) => {
      assert(error instanceof DataLockedError);
      assert.ok(error.message.startsWith(message), error.message);
      assert.equal(error.byServer, byServer);
      return true;
    });
  }
});

Deno.test("a briefly locked folder is waited for if requested", async () => {
  await using dir = await temporary();
  const first = await DataLock.acquire(dir.path, { by: "backup" });
  const second = DataLock.acquire(dir.path, { by: "serve", waitMs: 60_000 });
  await assert.rejects(DataLock.acquire(dir.path, { by: "admin" }), DataLockedError);
  first[Symbol.dispose]();
  using _second = await second;
  assert.equal(await Deno.readTextFile(join(dir.path, "lock")), `${Deno.pid} serve\n`);
});
