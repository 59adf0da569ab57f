/** The server as an operator meets it: a real process, its output, its answers, its exit code. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Child, projectDir } from "../support/processes/child.ts";
import { childrenOf, commandLine } from "../support/processes/process_tree.ts";
import { documentedApps } from "../docs/pages.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { found, until } from "../support/waiting.ts";
import { bundleOf } from "../ops/deploy/support.ts";

const SCHEMA = `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`;
const NOTES = `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const list = untypedQuery({
  args: {},
  handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text),
});
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const secret = untypedAction({ args: {}, handler: (ctx) => ctx.env });
export const hang = untypedAction({ args: {}, handler: () => new Promise((resolve) => setTimeout(resolve, 600_000)) });
`;
const LOOP = `
import { untypedMutation } from "syncline/server";
export const run = untypedMutation({ args: {}, handler: () => { for (;;); } });
`;

interface App extends AsyncDisposable {
  readonly dir: string;
  readonly dataDir: string;
  readonly functionsDir: string;
  /** The command line of a server. */
  args(flags: readonly string[]): string[];
  /** Starts a server and waits until it serves. */
  serve(
    flags?: readonly string[],
    runtimeFlags?: readonly string[],
    folder?: readonly string[],
  ): Promise<Served>;
  /** Starts a server that is expected to exit. */
  run(flags: readonly string[]): Promise<{ readonly code: number; readonly output: string }>;
}

class Served implements AsyncDisposable {
  readonly child: Child;
  readonly url: string;

  constructor(child: Child, url: string) {
    this.child = child;
    this.url = url;
  }

  async call(kind: "query" | "mutation" | "action", path: string, args: Record<string, unknown> = {}) {
    const body = JSON.stringify({ path, args });
    const response = await fetch(`${this.url}/api/${kind}`, { method: "POST", body });
    return await response.json();
  }

  async signal(signal: Deno.Signal): Promise<Deno.CommandStatus> {
    Deno.kill(this.child.pid, signal);
    return await this.child.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.child[Symbol.asyncDispose]();
  }
}

/** Isolates of a server. Another reader may start at any time. */
async function isolatesOf(server: number): Promise<number[]> {
  const children = await childrenOf(server);
  const lines = await Promise.all(children.map(commandLine));
  return children.filter((_, at) => lines[at]?.includes("isolate"));
}

async function app(files: Record<string, string> = { "schema.ts": SCHEMA, "notes.ts": NOTES }): Promise<App> {
  const dir = await Deno.makeTempDir();
  const [dataDir, functionsDir] = [join(dir, "data"), join(dir, "functions")];
  await Deno.mkdir(functionsDir);
  for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(functionsDir, name), text);
  const args = (
    flags: readonly string[],
    runtimeFlags: readonly string[] = [],
    folder: readonly string[] = ["--functions", functionsDir],
  ) => [
    ...["run", "--quiet", "--no-prompt", "-P=serve", ...runtimeFlags, "main.ts"],
    ...["--port", "0", "--data", dataDir, ...folder, ...flags],
  ];
  return {
    dir,
    dataDir,
    functionsDir,
    args,
    async serve(flags = [], runtimeFlags, folder) {
      const child = new Child({ args: args(flags, runtimeFlags, folder) });
      try {
        const [url] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
        return new Served(child, url);
      } catch (error) {
        await child[Symbol.asyncDispose]();
        throw error;
      }
    },
    async run(flags) {
      const child = new Child({ args: args(flags) });
      const { code } = await child.exited;
      // Waits for the rest of the output.
      await child[Symbol.asyncDispose]();
      return { code, output: child.lastOutput };
    },
    [Symbol.asyncDispose]: () => Deno.remove(dir, { recursive: true }),
  };
}

Deno.test("a data folder serves the same app from server to server, whichever way each ends", async (t) => {
  await using a = await app({ "schema.ts": SCHEMA, "notes.ts": NOTES, "loop.ts": LOOP });
  const envFile = join(a.dir, "app.env");
  await Deno.writeTextFile(envFile, "KEY=value\n");
  {
    await using server = await a.serve(["--env-file", envFile]);
    await t.step("a served app answers calls, and its files are private", async () => {
      const added = await server.call("mutation", "notes:add", { text: "first" });
      assert.equal(added.status, "success", JSON.stringify(added));
      assert.deepEqual((await server.call("query", "notes:list")).value, ["first"]);
      const health = await (await fetch(`${server.url}/api/health`)).json();
      assert.deepEqual(health, { status: "ok", ts: added.ts });
      // The folder may have been there before, open to others: the files are not.
      for await (const { name, isFile } of Deno.readDir(a.dataDir)) {
        const { mode } = await Deno.stat(join(a.dataDir, name));
        if (isFile) assert.equal((mode ?? 0) & 0o077, 0, name);
      }
    });
    await t.step(
      "isolates keep running when a signal for the server reaches its whole process group",
      async () => {
        await server.call("action", "notes:secret");
        await server.call("query", "notes:list");
        const isolates = await isolatesOf(server.child.pid);
        assert.ok(isolates.length >= 3, "a writer, a reader and a runner");
        for (const pid of isolates) {
          for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) Deno.kill(pid, signal);
        }
        assert.equal((await server.call("mutation", "notes:add", { text: "second" })).status, "success");
        const left = await isolatesOf(server.child.pid);
        assert.deepEqual(isolates.filter((pid) => !left.includes(pid)), [], "these have ended");
      },
    );
    await t.step("actions see the environment file, and none of the server's environment", async () => {
      assert.deepEqual((await server.call("action", "notes:secret")).value, { KEY: "value" });
    });
    await t.step(
      "a second server on the same data folder ends with exit code 1 and names the first",
      async () => {
        const second = await a.run([]);
        assert.equal(second.code, 1);
        assert.match(second.output, new RegExp(`Another server \\(process ${server.child.pid}\\)`));
        assert.doesNotMatch(second.output, /\n\s+at /, "no stack trace");
      },
    );
    await t.step("SIGTERM closes sockets with 1012 and ends the server with exit code 0", async () => {
      const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/sync`);
      const closed = new Promise<CloseEvent>((resolve) => socket.addEventListener("close", resolve));
      await new Promise((resolve) => socket.addEventListener("open", resolve));
      assert.equal((await server.signal("SIGTERM")).code, 0);
      assert.equal((await closed).code, 1012);
    });
  }
  // Elsewhere nothing ends a process with its parent.
  const isLooping = Deno.build.os === "linux";
  await t.step(
    `writes survive a restart, and kill -9${isLooping ? " during an endless mutation" : ""}`,
    async () => {
      await using server = await a.serve();
      assert.deepEqual((await server.call("query", "notes:list")).value, ["first", "second"]);
      await server.call("mutation", "notes:add", { text: "third" });
      // Each ends at its time limit, which a busy machine may reach before the kill.
      const looping = Array.from(
        { length: isLooping ? 20 : 0 },
        () => server.call("mutation", "loop:run").catch(() => "cut off"),
      );
      // A runner has to start for this, which takes longer than the other calls take to reach the writer.
      assert.equal((await server.call("action", "notes:secret")).status, "success");
      await server.signal("SIGKILL");
      if (isLooping) assert.equal((await Promise.all(looping)).at(-1), "cut off");
    },
  );
  await t.step("a second signal immediately ends a server that waits for a running call", async () => {
    await using server = await a.serve();
    const hanging = server.call("action", "notes:hang").catch(() => "cut off");
    // The call must have started: a mutation sent after it is answered only when the server has read both.
    await server.call("mutation", "notes:add", { text: "fourth" });
    assert.deepEqual((await server.call("query", "notes:list")).value, [
      "first",
      "second",
      "third",
      "fourth",
    ]);
    Deno.kill(server.child.pid, "SIGTERM");
    await server.child.line(/Stopping/);
    assert.equal((await server.signal("SIGINT")).code, 130);
    await hanging;
  });
  await t.step(
    "DP9 a server without its functions folder serves the last version, and deploys replace it",
    () => checkServingWithoutFolder(a),
  );
});

/** Expects four notes in the database, and leaves a folder without functions. */
async function checkServingWithoutFolder(a: App): Promise<void> {
  const notes = ["first", "second", "third", "fourth"];
  await Deno.rename(a.functionsDir, `${a.functionsDir}-elsewhere`);
  let hash = "";
  {
    await using server = await a.serve([], [], []);
    assert.deepEqual((await server.call("query", "notes:list")).value, notes);
    await until(() => /\bsetup +http/.test(server.child.lastOutput));
    // The warning is logged to the other output stream, which may be read later.
    hash = await found(
      () => /WARN\s+Nothing was deployed yet: serving version (\w{32})/i.exec(server.child.lastOutput)?.[1],
      { what: () => server.child.lastOutput },
    );
    const [, token] = /#\S*?=([\w-]+)/.exec(server.child.lastOutput) ?? [];
    const setup = await fetch(`${server.url}/api/auth/admin/setup`, {
      method: "POST",
      body: JSON.stringify({ token, email: "root@example.com", password: "correct horse battery" }),
    });
    const headers = { Authorization: `Bearer ${(await setup.json()).accessToken}` };
    const deploy = async (notes: string) => {
      const { bytes } = await bundleOf({
        "functions/schema.ts": SCHEMA,
        "functions/notes.ts": notes,
        "functions/loop.ts": LOOP,
      });
      const response = await fetch(`${server.url}/api/admin/functions`, {
        method: "PUT",
        headers,
        body: bytes,
      });
      const { changes, ...deployed } = await response.json();
      return { ...deployed, functions: changes.functions };
    };
    const none = { added: [], removed: [], changed: [] };
    // The same code is recorded, so that a rollback finds it.
    assert.deepEqual(await deploy(NOTES), { hash, previous: hash, swapped: true, functions: none });
    const second = await deploy(`${NOTES}export const count = untypedQuery({ handler: () => 1 });`);
    assert.deepEqual([second.previous, second.functions.added], [hash, ["notes:count"]]);
    assert.deepEqual((await server.call("query", "notes:list")).value, notes);
    hash = second.hash;
    await server.signal("SIGTERM");
  }
  await using last = await a.serve([], [], []);
  assert.equal((await last.call("query", "notes:count")).value, 1);
  await until(() => last.child.lastOutput.includes(`version ${hash}`));
  assert.doesNotMatch(last.child.lastOutput, /Nothing was deployed/);
}

Deno.test("--dev waits for an edit of a broken app, loads edits immediately, keeps the old code if one is broken, and reports type errors", async () => {
  await using a = await app({ "schema.ts": SCHEMA, "notes.ts": 'throw new Error("broken at first");\n' });
  /** Replaces the file in one step, because the server may read a half-written one. */
  const edit = async (text: string) => {
    const draft = join(a.dir, "draft.ts");
    await Deno.writeTextFile(draft, text);
    await Deno.rename(draft, join(a.functionsDir, "notes.ts"));
  };
  await using child = new Child({ args: a.args(["--dev"]) });
  await child.line(/Waiting for the next edit/);
  const served = child.line(/http:\/\/127\.0\.0\.1:\d+/);
  await edit(NOTES);
  const [url] = await served;
  const server = new Served(child, url);
  assert.deepEqual((await server.call("query", "notes:list")).value, []);
  await server.call("mutation", "notes:add", { text: "kept" });
  const reloaded = child.line(/Functions reloaded/);
  await edit(NOTES.replace("note.text)", "note.text.toUpperCase())"));
  await reloaded;
  assert.deepEqual((await server.call("query", "notes:list")).value, ["KEPT"]);
  const broken = child.line(/notes\.ts:\d+/);
  await edit(`${NOTES}\nthrow new Error("broken edit");\n`);
  await broken;
  assert.deepEqual((await server.call("query", "notes:list")).value, ["KEPT"]);
  const typed = child.line(/TS2322/);
  await edit(`${NOTES}\nexport const wrong: number = "text";\n`);
  await typed;
  assert.deepEqual((await server.call("query", "notes:list")).value, ["kept"]);
});

Deno.test("HE4 a server whose listener was closed by the runtime reports it and exits with code 1", async () => {
  await using a = await app();
  await using server = await a.serve([], ["--preload", "tests/server/support/serve_until_asked.ts"]);
  const socket = new WebSocket(`${server.url.replace("http", "ws")}/end-of-port`);
  socket.addEventListener("error", () => {});
  assert.equal((await server.child.exited).code, 1);
  // Waits for the rest of the output.
  await server.child[Symbol.asyncDispose]();
  assert.match(server.child.lastOutput, /cannot continue and stops\. Restart it error="[^"]*closed the port/);
});

Deno.test("invalid options end with exit code 2, a failed start with 1", async () => {
  await using a = await app();
  const starts = (
    [
      [["--prot", "1"], 2, /unknown option '--prot'/],
      [["--port", "many"], 2, /--port: expected a port/],
      [["--functions", join(a.dir, "nowhere")], 1, /Cannot find the functions folder/],
      [
        ["--functions", join(a.functionsDir, "notes.ts")],
        1,
        /--functions needs a folder, but ".*notes\.ts" is a file/,
      ],
      [["--static", join(a.dir, "nowhere")], 1, /Cannot serve the static folder/],
      [["--env-file", join(a.dir, "nowhere")], 1, /Cannot read the environment file/],
    ] as const
  ).map(async ([flags, code, message]) => {
    const result = await a.run(flags);
    assert.equal(result.code, code, flags.join(" "));
    assert.match(result.output, message);
    assert.doesNotMatch(result.output, /\n\s+at /, "no stack trace");
  });
  await Promise.all(starts);
});

Deno.test("an app that cannot be loaded ends the start with exit code 1, its file and line", async () => {
  await using a = await app({ "notes.ts": "export const x = 1;\nthrow new Error('broken on purpose');\n" });
  const { code, output } = await a.run([]);
  assert.equal(code, 1);
  assert.match(output, /broken on purpose/);
  assert.match(output, /notes\.ts:2/);
});

Deno.test("the README's functions work, with a request over HTTP and in the documentation's page", async () => {
  const apps = await documentedApps();
  const files = [...apps.get("readme") ?? []].filter(([name]) => name.startsWith("functions/"))
    .map(([name, text]) => [name.slice("functions/".length), text]);
  await using a = await app(Object.fromEntries(files));
  await using server = await a.serve();
  const response = await fetch(`${server.url}/api/mutation`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path: "tasks:add", args: { text: "hello" } }),
  });
  assert.equal((await response.json()).status, "success");
  // The page's script, with the client from disk: Deno imports nothing over plain HTTP without a permission.
  const guide = await Deno.readTextFile(join(projectDir, "docs/client.md"));
  const page = guide.match(/<script type="module">\n(.*?)<\/script>/s)?.[1] ?? "";
  const client = new URL("../../mod/client/mod.ts", import.meta.url).href;
  const script = join(a.dir, "page.ts");
  await Deno.writeTextFile(
    script,
    page.replace("http://127.0.0.1:3210/_/client.js", client).replace("http://127.0.0.1:3210", server.url),
  );
  await using reader = new Child({
    args: ["run", "--quiet", "--no-prompt", "--allow-net=127.0.0.1", script],
  });
  await reader.line(/text: "hello"/);
});

Deno.test("without an app the example is served, with its page and client", async () => {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using child = new Child({
    args: [..."run --quiet --no-prompt -P=serve main.ts --port 0 --data".split(" "), dataDir],
  });
  const [url] = await child.line(/http:\/\/127\.0\.0\.1:\d+/);
  for (
    const [path, text] of [["/", "<!doctype html"], ["/_/client.js", "export"], [
      "/_/",
      "Syncline",
    ]] as const
  ) {
    const response = await fetch(url + path);
    assert.equal(response.status, 200, path);
    assert.ok((await response.text()).toLowerCase().includes(text.toLowerCase()), path);
  }
});
