/** Takeovers while the disk is full, with real processes. Linux, as root. */
import assert from "node:assert/strict";
import { OldProcess } from "../../mod/server/takeover/old_process.ts";
import { SmallDisk, smallDiskMissing } from "../ops/replication/small_disk.ts";
import { ServerProcess } from "../support/processes/server_process.ts";

const missing = await smallDiskMissing();

Deno.test({
  name:
    "[TO4] on a full disk the old server continues, or ends with the reason, and no acknowledged write is lost",
  ignore: missing !== null,
  async fn() {
    await using disk = await SmallDisk.mount(96);
    const options = { dataDir: disk.at("data"), functions: "tests/durability/functions" };
    await using server = await ServerProcess.start(options);
    const amount = () => server.call("query", "amounts:get", { name: "a" });
    await server.call("mutation", "amounts:create", { sum: 7 });
    // Full before the new process starts: it ends before the old one steps down.
    await disk.fill();
    const next = { ...options, port: server.port, flags: ["--takeover"] };
    await assert.rejects(ServerProcess.start(next), /cannot be served: No space left on device/);
    assert.equal(await amount(), 7);
    await assert.rejects(server.call("mutation", "amounts:move", { by: 1 }), /not enough room/);
    await disk.makeRoom();
    await server.call("mutation", "amounts:move", { by: 1 });
    // The disk fills up after the old process has stepped down, and the new one ends: no process can start isolates.
    const oldProcess = await OldProcess.find(options.dataDir);
    await oldProcess?.stepDown();
    await disk.fill();
    oldProcess?.[Symbol.dispose]();
    assert.equal((await server.exited).code, 1);
    assert.match(server.lastOutput, /Cannot continue after the failed takeover .*No space left on device/);
    await disk.makeRoom();
    await using restarted = await ServerProcess.start(options);
    assert.equal(await restarted.call("query", "amounts:get", { name: "a" }), 6);
    await restarted.call("mutation", "amounts:move", { by: 1 });
  },
});
