/** The server as one file, run as on a machine that has no Deno. */
import assert from "node:assert/strict";
import { productionConfig } from "../../mod/build/production_config.ts";
import { commandLine, processTree } from "../support/processes/process_tree.ts";
import { makeImages, measure } from "../storage/support/images.ts";
import { call, Machine, untilEnded } from "./support/machine.ts";
import { sharedMachine, singleFile, writeSmallFile } from "./support/one_file.ts";

Deno.test("the single file serves without Deno", async (t) => {
  const machine = await sharedMachine();
  const file = await singleFile();

  await t.step(
    "a server runs functions with packages, makes thumbnails and ends with all it started",
    async () => {
      // Like a machine whose npm uses another registry, which must receive no request.
      const registry = { NPM_CONFIG_REGISTRY: "http://127.0.0.1:9/" };
      const { process, output, url } = await machine.serve([file], registry);
      const health = await fetch(`${url}/api/health`);
      assert.equal(health.status, 200);
      await health.body?.cancel();
      await call(url, "mutation", "notes:add", { text: "hello" });
      assert.deepEqual(await call(url, "query", "notes:list"), ["HELLO"]);

      const { image } = await makeImages({ image: { width: 40, height: 20, format: "png" } });
      const uploadUrl = `${url}${await call(url, "mutation", "notes:upload")}`;
      const uploaded = await fetch(uploadUrl, {
        method: "POST",
        body: image,
        headers: { "Content-Type": "image/png" },
      });
      const { storageId } = await uploaded.json();
      const thumbnail = await fetch(`${url}/api/storage/${storageId}?thumb=10x10`);
      assert.equal(thumbnail.status, 200);
      const [measured] = await measure([await thumbnail.bytes()]);
      assert.equal(measured?.size, "10x5");

      const tree = await processTree(process.pid);
      assert.ok(tree.length >= 4, "main, a writer, a reader and the maker of thumbnails");
      assert.match(await commandLine(process.pid) ?? "", /\/syncline\/[0-9a-f]{32}\/deno run/);
      process.kill("SIGTERM");
      assert.equal((await process.status).code, 0, output.text);
      await untilEnded(tree);
    },
  );

  await t.step("other commands are available", async () => {
    const { code, output } = await machine.run([file, "admin", "list", "--data", "./data"]);
    assert.equal(code, 0, output);
  });
});

Deno.test("the single file unpacks itself once, and again if it is damaged", async (t) => {
  await using machine = await Machine.make();
  const file = `${machine.dir}/syncline`;
  await writeSmallFile(file);

  await t.step("several simultaneous starts unpack the files once", async () => {
    const runs = await Promise.all(Array.from({ length: 3 }, () => machine.run([file, "--help"])));
    for (const { code, output } of runs) {
      assert.equal(code, 0, output);
      assert.match(output, /^Usage: syncline/);
    }
    const unpacked = await machine.unpacked();
    assert.equal(unpacked.length, 1);
    assert.match(unpacked[0] ?? "", /^[0-9a-f]{32}$/);
  });

  await t.step("damaged files are unpacked again, unused ones are removed", async () => {
    const cache = `${machine.dir}/home/.cache/syncline`;
    const [current = ""] = await machine.unpacked();
    const aged = async (path: string, days: number) => {
      const at = new Date(Date.now() - days * 86_400_000);
      await Deno.utime(path, at, at);
    };
    const [unused, recent, running] = ["a", "b", "c"].map((digit) => digit.repeat(32)) as [
      string,
      string,
      string,
    ];
    for (const [name, days] of [[unused, 92], [recent, 88], [running, 92]] as const) {
      await Deno.mkdir(`${cache}/${name}`);
      await Deno.writeTextFile(`${cache}/${name}/complete`, "");
      await aged(`${cache}/${name}/complete`, days);
    }
    const sleep = (await new Deno.Command("sh", { args: ["-c", "command -v sleep"] }).output()).stdout;
    await Deno.symlink(new TextDecoder().decode(sleep).trim(), `${cache}/${running}/deno`);
    await Deno.mkdir(`${cache}/.part-old/x`, { recursive: true });
    await Deno.mkdir(`${cache}/.part-new/x`, { recursive: true });
    await aged(`${cache}/.part-old`, 1);
    const old = new Deno.Command(`${cache}/${running}/deno`, { args: ["1000"] }).spawn();
    const home = `${cache}/${current}`;
    try {
      await Deno.truncate(`${home}/app/cli.ts`, 10);
      assert.equal((await machine.run([file, "--help"])).code, 0);
      const left = [".part-new", current, recent, running].toSorted();
      assert.deepEqual((await machine.unpacked()).toSorted(), left);
    } finally {
      old.kill();
      await old.status;
    }

    const whole = (await Deno.stat(home)).ino;
    assert.equal((await machine.run([file, "--help"])).code, 0);
    assert.equal((await Deno.stat(home)).ino, whole, "what is whole stays");
    const npmFolder = `${home}/cache/npm`;
    await Deno.remove(npmFolder, { recursive: true });
    assert.equal((await machine.run([file, "--help"])).code, 0);
    assert.ok((await Deno.stat(npmFolder)).isDirectory);
  });

  await t.step("a damaged file and a missing home folder are reported, and leave no files", async () => {
    const nowhere = await machine.run([file, "--help"], { HOME: "" });
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.output, /set SYNCLINE_CACHE_DIR/);
    const { size } = await Deno.stat(file);
    const middle = Math.floor(size / 2);
    const damages = [
      // The last bytes: the sum by which the archive's contents are checked.
      async () => await overwrite(file, { at: size - 8, bytes: new Uint8Array(4).fill(0x55) }),
      async () => await Deno.truncate(file, middle),
    ];
    for (const damage of damages) {
      await damage();
      const { code, output } = await machine.run([file, "--help"], { HOME: `${machine.dir}/other` });
      assert.equal(code, 1);
      assert.match(output, /cannot unpack into .*damaged/);
      assert.deepEqual(await machine.unpacked("other"), []);
    }
  });
});

async function overwrite(path: string, { at, bytes }: { at: number; bytes: Uint8Array }): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.seek(at, Deno.SeekMode.Start);
  assert.equal(await file.write(bytes), bytes.length);
}

Deno.test("a production configuration contains only required options", () => {
  const { project, lock } = productionConfig({
    project: JSON.stringify({
      version: "1",
      imports: {
        "own": "./own.ts",
        "a": "npm:a@1.0.0",
        "a/sub": "npm:a@1.0.0/sub",
        "test": "npm:test@2.0.0",
      },
    }),
    lock: JSON.stringify({
      version: "5",
      specifiers: { "npm:a@1.0.0": "1.0.0", "npm:test@2.0.0": "2.0.0" },
      npm: {
        "a@1.0.0": { integrity: "x", optionalDependencies: ["here", "there"] },
        "here@3.0.0": {},
        "there@3.0.0": {},
        "test@2.0.0": {},
      },
      workspace: { dependencies: ["npm:a@1.0.0", "npm:test@2.0.0"] },
    }),
    ids: new Set(["a@1.0.0", "here@3.0.0"]),
  });
  assert.deepEqual(JSON.parse(project), {
    version: "1",
    imports: { "own": "./own.ts", "a": "npm:a@1.0.0", "a/sub": "npm:a@1.0.0/sub" },
  });
  assert.deepEqual(JSON.parse(lock), {
    version: "5",
    specifiers: { "npm:a@1.0.0": "1.0.0" },
    npm: { "a@1.0.0": { integrity: "x", optionalDependencies: ["here"] }, "here@3.0.0": {} },
    workspace: { dependencies: ["npm:a@1.0.0"] },
  });
});
