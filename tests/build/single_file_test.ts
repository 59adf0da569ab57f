/** The server as one file: built once, then run as on a machine that has no Deno. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { productionConfig } from "../../mod/build/production_config.ts";
import { commandLine, processTree } from "../bench/support/process_tree.ts";
import { makeImages, measure } from "../storage/support/images.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
/** What the file needs of the system, and what the server does. There is no Deno among it. */
const PROGRAMS = ["sh", "tail", "gzip", "tar", "mktemp", "mv", "rm", "mkdir", "setpriv", "nice", "true"];
/** Unpacking and starting, on a busy machine. */
const START_MS = 120_000;

const FUNCTIONS = `
  import { mutation, query } from "syncline/server";
  import { shout } from "shout";
  import { z } from "zod";
  export const add = mutation({
    args: { text: z.string() },
    handler: (ctx, { text }) => ctx.db.insert("notes", { text: shout(text) }),
  });
  export const list = query(async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text));
  export const upload = mutation((ctx) => ctx.storage.generateUploadUrl());
`;
const SCHEMA = `
  import { defineSchema, defineTable } from "syncline/server";
  import { z } from "zod";
  export default defineSchema({ notes: defineTable({ text: z.string() }) });
`;

interface Run {
  readonly process: Deno.ChildProcess;
  /** What it prints, as far as it has. */
  readonly output: { text: string };
}

/** A folder with the built file, a home, a path without Deno, and an app. */
class Machine implements AsyncDisposable {
  readonly dir: string;
  readonly file: string;

  private constructor(dir: string) {
    this.dir = dir;
    this.file = `${dir}/syncline`;
  }

  static async make(): Promise<Machine> {
    const machine = new Machine(await Deno.realPath(await Deno.makeTempDir()));
    const { dir } = machine;
    for (const folder of ["bin", "home", "app/functions", "app/node_modules/shout"]) {
      await Deno.mkdir(`${dir}/${folder}`, { recursive: true });
    }
    for (const name of PROGRAMS) {
      const found = await new Deno.Command("sh", { args: ["-c", `command -v ${name}`] }).output();
      const path = new TextDecoder().decode(found.stdout).trim();
      if (path.startsWith("/")) await Deno.symlink(path, `${dir}/bin/${name}`);
    }
    await Deno.writeTextFile(`${dir}/app/functions/notes.ts`, FUNCTIONS);
    await Deno.writeTextFile(`${dir}/app/functions/schema.ts`, SCHEMA);
    await Deno.writeTextFile(
      `${dir}/app/node_modules/shout/index.js`,
      `exports.shout = (text) => text.toUpperCase();`,
    );
    return machine;
  }

  start(args: readonly string[], env: Record<string, string> = {}): Run {
    const process = new Deno.Command("/bin/sh", {
      // The shell opens the file as the kernel would; its path is what the file reads itself by.
      args: ["-c", 'exec "$0" "$@"', this.file, ...args],
      cwd: `${this.dir}/app`,
      clearEnv: true,
      env: { PATH: `${this.dir}/bin`, HOME: `${this.dir}/home`, ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const output = { text: "" };
    for (const stream of [process.stdout, process.stderr]) {
      (async () => {
        for await (const part of stream.pipeThrough(new TextDecoderStream())) output.text += part;
      })();
    }
    return { process, output };
  }

  async run(args: readonly string[], env: Record<string, string> = {}) {
    const { process, output } = this.start(args, env);
    const { code } = await process.status;
    // What it printed last may still be under way.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { code, output: output.text };
  }

  /** Folders in the cache. */
  async unpacked(home = "home"): Promise<string[]> {
    return (await Array.fromAsync(Deno.readDir(`${this.dir}/${home}/.cache/syncline`))).map(({ name }) =>
      name
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

async function until(holds: () => boolean | Promise<boolean>, what: () => string): Promise<void> {
  const end = performance.now() + START_MS;
  while (!await holds()) {
    if (performance.now() > end) throw new Error(what());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function call(url: string, kind: string, path: string, args: Record<string, unknown> = {}) {
  const response = await fetch(`${url}/api/${kind}`, {
    method: "POST",
    body: JSON.stringify({ path, args }),
  });
  return (await response.json()).value;
}

Deno.test("the single file serves where there is no Deno", async (t) => {
  await using machine = await Machine.make();
  const built = await new Deno.Command("deno", {
    args: ["task", "build:single", machine.file],
    cwd: PROJECT,
  }).output();
  assert.ok(built.success, new TextDecoder().decode(built.stderr));

  await t.step("several starts at once unpack it once", async () => {
    const runs = await Promise.all(Array.from({ length: 3 }, () => machine.run(["--help"])));
    for (const { code, output } of runs) {
      assert.equal(code, 0, output);
      assert.match(output, /^Usage: syncline/);
    }
    const unpacked = await machine.unpacked();
    assert.equal(unpacked.length, 1);
    assert.match(unpacked[0] ?? "", /^[0-9a-f]{32}$/);
  });

  await t.step(
    "a server runs functions with packages, makes thumbnails and ends with all it started",
    async () => {
      // As on a machine whose npm has another registry: nothing is asked of any.
      const registry = { NPM_CONFIG_REGISTRY: "http://127.0.0.1:9/" };
      const { process, output } = machine.start(["serve", "--port", "0"], registry);
      let url: string | undefined;
      await until(() => {
        url = /http:\/\/127\.0\.0\.1:\d+/.exec(output.text)?.[0];
        return url !== undefined;
      }, () => output.text);
      assert.ok(url);
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
      await until(
        async () => (await Promise.all(tree.map(commandLine))).every((line) => line === null),
        () => `Some of ${tree} still run`,
      );
    },
  );

  await t.step("other commands are there too", async () => {
    const { code, output } = await machine.run(["admin", "list", "--data", "./data"]);
    assert.equal(code, 0, output);
  });

  await t.step("a damaged file and a missing home are told of, and leave nothing", async () => {
    const nowhere = await machine.run(["--help"], { HOME: "" });
    assert.equal(nowhere.code, 1);
    assert.match(nowhere.output, /set SYNCLINE_CACHE_DIR/);
    const size = (await Deno.stat(machine.file)).size;
    await Deno.truncate(machine.file, Math.floor(size / 2));
    const { code, output } = await machine.run(["--help"], { HOME: `${machine.dir}/other` });
    assert.equal(code, 1);
    assert.match(output, /cannot unpack into .*damaged/);
    assert.deepEqual(await machine.unpacked("other"), []);
  });
});

Deno.test("a configuration for production names what is needed and nothing else", () => {
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

const denort = Deno.env.get("DENORT_BIN");

Deno.test({
  name: "a program made by deno compile refuses to serve (needs DENORT_BIN, the path of a denort)",
  ignore: denort === undefined,
  async fn() {
    const dir = await Deno.makeTempDir();
    try {
      const compiled = await new Deno.Command("deno", {
        args: ["compile", "--quiet", "-P=serve", "--output", `${dir}/syncline`, "cli.ts"],
        cwd: PROJECT,
      }).output();
      assert.ok(compiled.success, new TextDecoder().decode(compiled.stderr));
      const { code, stderr } = await new Deno.Command(`${dir}/syncline`, { args: ["serve"] }).output();
      assert.equal(code, 1);
      assert.match(new TextDecoder().decode(stderr), /deno task build:single/);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  },
});
