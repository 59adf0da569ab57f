/** The image process: the server survives its crashes. */
import assert from "node:assert/strict";
import { ServiceError } from "../../mod/errors.ts";
import { ProcessThumbnailMaker } from "../../mod/storage/thumbnails/maker.ts";
import { makeImages, measure } from "./support/images.ts";
import { found, pause } from "../support/waiting.ts";

/** IDs of this process's image processes. */
async function imageProcesses(): Promise<number[]> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "pid=,args=", "--ppid", String(Deno.pid)] })
    .output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line.includes("thumbnails/process.ts"))
    .map((line) => parseInt(line));
}

const ROUNDS_MAX = 10;

const spec = { width: 20, height: 20, fit: "cover" } as const;

Deno.test({
  name: "TH13 the process starts with the first thumbnail, and its crash affects no other request",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const { jpeg } = await makeImages({ jpeg: { width: 40, height: 40, format: "jpeg" } });
    await using maker = new ProcessThumbnailMaker();
    assert.deepEqual(await imageProcesses(), []);
    assert.ok((await maker.make(() => Promise.resolve(jpeg), spec)).length > 0);
    const [first = 0, ...others] = await imageProcesses();
    assert.ok(first > 0 && others.length === 0);
    // Suspended, so that both are in progress when it is killed. The next process creates each of them.
    Deno.kill(first, "SIGSTOP");
    const both = [
      maker.make(() => Promise.resolve(jpeg), spec),
      maker.make(() => Promise.resolve(jpeg), spec),
    ];
    await pause(50);
    Deno.kill(first, "SIGKILL");
    for (const { size } of await measure(await Promise.all(both))) assert.equal(size, "20x20");
    const [second = 0] = await imageProcesses();
    assert.ok(second > 0 && second !== first);
    // An image during which two processes crash is to blame.
    let failure: unknown = null;
    // On a busy machine the second process may create the thumbnail before it is killed.
    for (let round = 0; round < ROUNDS_MAX && failure === null; round++) {
      assert.ok((await maker.make(() => Promise.resolve(jpeg), spec)).length > 0);
      const [one = 0] = await imageProcesses();
      assert.ok(one > 0);
      Deno.kill(one, "SIGSTOP");
      const ended = maker.make(() => Promise.resolve(jpeg), spec).then(() => null, (error) => error);
      await pause(50);
      Deno.kill(one, "SIGKILL");
      const other = await found(async () => (await imageProcesses()).find((pid) => pid !== one), {
        what: "the next process",
        everyMs: 1,
      });
      Deno.kill(other, "SIGKILL");
      failure = await ended;
    }
    assert.ok(failure instanceof ServiceError, String(failure));
    assert.equal(failure.code, "invalid_image");
    assert.ok((await maker.make(() => Promise.resolve(jpeg), spec)).length > 0);
  },
});

Deno.test("TH8 an image that is not processed in time, twice, is not called invalid", async () => {
  const { jpeg } = await makeImages({ jpeg: { width: 40, height: 40, format: "jpeg" } });
  await using maker = new ProcessThumbnailMaker({ timeoutMs: 1 });
  await assert.rejects(maker.make(() => Promise.resolve(jpeg), spec), { code: "overloaded" });
});

Deno.test({
  name: "TH13 every thread of the process has lower priority than the server",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const { jpeg } = await makeImages({ jpeg: { width: 40, height: 40, format: "jpeg" } });
    await using maker = new ProcessThumbnailMaker();
    await maker.make(() => Promise.resolve(jpeg), spec);
    const [pid = 0] = await imageProcesses();
    const nicenessOf = async (pid: number) => {
      const { stdout } = await new Deno.Command("ps", { args: ["-L", "-o", "nice=", "-p", String(pid)] })
        .output();
      return new TextDecoder().decode(stdout).trim().split(/\s+/).map(Number);
    };
    const [own = NaN] = await nicenessOf(Deno.pid);
    const niceness = await nicenessOf(pid);
    assert.ok(niceness.length > 1 && niceness.every((value) => value > own), `${own}, ${niceness}`);
  },
});
