/** Attempts of app code to reach forbidden things: at the top of a module and in a handler, in every role. */
import assert from "node:assert/strict";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { type Answer, type TestIsolate, Workspace } from "./support.ts";

interface Attempt {
  readonly name: string;
  /** Body of an async function that can use the constants of {@linkcode spySource}. Any result but `undefined` is an escape. */
  readonly code: string;
  /** Roles for which it is allowed. */
  readonly allowed?: readonly IsolateRole[];
  /** During load it may also break the app, because the runtime remembers a package that it could not add. */
  readonly handlerOnly?: true;
  /** The bundler would include it or refuse the app, so it is tried in generated code only. */
  readonly generatedOnly?: true;
}

const runner: readonly IsolateRole[] = ["runner"];

const attempts: readonly Attempt[] = [
  { name: "read a file of the data folder", code: `return Deno.readTextFileSync(SECRET)` },
  { name: "read it by fetch", code: `return await (await fetch("file://" + SECRET)).text()` },
  {
    name: "import it as JSON",
    code: `return (await import("file://" + SECRET, { with: { type: "json" } })).default`,
  },
  {
    name: "import it as text",
    code: `return (await import("file://" + SECRET, { with: { type: "text" } })).default`,
  },
  { name: "read it by node:fs", code: `return (await import("node:fs")).readFileSync(SECRET, "utf8")` },
  { name: "read it by bare fs", code: `return (await import("fs")).readFileSync(SECRET, "utf8")` },
  {
    name: "read it by fs/promises",
    code: `return await (await import("node:fs/promises")).readFile(SECRET, "utf8")`,
  },
  {
    name: "read an inherited descriptor",
    code: `return (await import("node:fs")).readSync(3, new Uint8Array(9), 0, 9, 0)`,
  },
  { name: "write a file", code: `Deno.writeTextFileSync(OUT, "x"); return 1` },
  { name: "write by node:fs", code: `(await import("node:fs")).writeFileSync(OUT, "x"); return 1` },
  { name: "connect", code: `await Deno.connect({ port: PORT }); return 1`, allowed: runner },
  { name: "fetch", code: `return await (await fetch("http://127.0.0.1:" + PORT)).text()`, allowed: runner },
  {
    name: "open a WebSocket",
    code:
      `const s = new WebSocket("ws://127.0.0.1:" + PORT); await new Promise((r) => s.onclose = r); return 1`,
    allowed: runner,
  },
  {
    name: "open an EventSource",
    code: `new EventSource("http://127.0.0.1:" + PORT).close(); return 1`,
    allowed: runner,
  },
  {
    name: "connect by node:net",
    code:
      `const s = (await import("node:net")).connect(PORT); s.on("error", () => {}); s.destroy(); return 1`,
    allowed: runner,
  },
  {
    name: "reach a unix socket",
    code: `const s = (await import("node:net")).connect({ path: SOCKET });
      return await new Promise((resolve, reject) => { s.on("connect", () => resolve(1)); s.on("error", reject); })`,
  },
  { name: "resolve a name", code: `return await Deno.resolveDns("localhost", "A")`, allowed: runner },
  { name: "listen", code: `Deno.listen({ port: 0 }); return 1` },
  { name: "read the environment", code: `return Deno.env.get("SECRET_OF_THE_SERVER")` },
  { name: "read the environment by process", code: `return process.env.SECRET_OF_THE_SERVER` },
  {
    name: "read the environment by node:process",
    code: `return (await import("node:process")).default.env.SECRET_OF_THE_SERVER`,
  },
  { name: "start a process", code: `return new Deno.Command("sh").outputSync().code` },
  {
    name: "start a process by node",
    code: `return (await import("node:child_process")).spawnSync("true").status`,
  },
  { name: "kill a process", code: `Deno.kill(Deno.ppid, "SIGTERM"); return 1` },
  { name: "kill a process by process", code: `process.kill(process.ppid, 0); return 1` },
  { name: "open another database", code: `new (await import("node:sqlite")).DatabaseSync(DB); return 1` },
  {
    name: "open a database in memory",
    code: `new (await import("sqlite")).DatabaseSync(":memory:"); return 1`,
    generatedOnly: true,
  },
  { name: "load a library", code: `Deno.dlopen("libc.so.6", {}); return 1` },
  { name: "load a library by process", code: `process.dlopen({ exports: {} }, "/lib/x.node"); return 1` },
  { name: "ask for a permission", code: `return (await Deno.permissions.request({ name: "read" })).state` },
  { name: "reach the internals of the runtime", code: `return Deno[Deno.internal]` },
  { name: "find the internals by symbol", code: `return Object.getOwnPropertySymbols(Deno)[0]` },
  { name: "get a module from process", code: `return process.getBuiltinModule("fs")` },
  { name: "get a binding from process", code: `return process.binding("fs")` },
  {
    name: "make a require",
    code: `return (await import("node:module")).createRequire("file:///x.js")("fs")`,
  },
  {
    name: "import a file at call time",
    code: `return (await import("./_later" + ".js")).later`,
    handlerOnly: true,
    generatedOnly: true,
  },
  {
    name: "require by a CommonJS file",
    code: `return (await import("./_common" + ".cjs")).default`,
    generatedOnly: true,
  },
  {
    name: "watch other code's resources",
    code: `(await import("node:async_hooks")).createHook({}).enable(); return 1`,
  },
  {
    name: "listen to the runtime's own channels",
    code: `(await import("node:diagnostics_channel")).subscribe("net.client.socket", () => {}); return 1`,
    allowed: runner,
  },
  {
    name: "go round by a data module",
    code: `return (await import("data:text/javascript,export{readFileSync as r}from'node:fs'")).r(SECRET)`,
  },
  {
    name: "go round by base64",
    code:
      `return (await import("data:text/javascript;base64," + btoa("import f from 'fs';export default f"))).default.readFileSync(SECRET)`,
  },
  {
    name: "go round by a blob module",
    code:
      `return (await import(URL.createObjectURL(new Blob(["export*from'node:fs'"], { type: "text/javascript" })))).readFileSync(SECRET)`,
  },
  {
    name: "go round by Function",
    code: `return (await new Function("return import('node:fs')")()).readFileSync(SECRET)`,
  },
  { name: "go round by eval", code: `return (await (0, eval)("import('node:fs')")).readFileSync(SECRET)` },
  {
    name: "import a package of the cache",
    code: `return Object.keys(await import("npm:" + "nodemailer@10.6.0")).length`,
    handlerOnly: true,
    generatedOnly: true,
  },
  {
    name: "import a package that was never fetched",
    code: `return Object.keys(await import("npm:" + "is-odd@3.0.1")).length`,
    handlerOnly: true,
    generatedOnly: true,
  },
  // Computed, because the runtime analyzes literal strings before the code runs, and then requires a permission.
  {
    name: "import a file of the cache",
    code: `return Object.keys(await import(CACHE + "index.cjs")).length`,
  },
  {
    name: "import a file of the cache by another spelling",
    code: `return Object.keys(await import(CACHE.replace("/npm/", "//npm/") + "index.cjs")).length`,
  },
  {
    name: "import a file of the cache by Function",
    code: `return Object.keys(await new Function("url", "return import(url)")(CACHE + "index.cjs")).length`,
  },
  {
    name: "import our own modules",
    code: `return Object.keys(await import(OURS + "functions/isolate/call.ts")).join()`,
  },
  {
    name: "import our own modules by another spelling",
    code:
      `return Object.keys(await import(OURS.replace("///", "////") + "functions/isolate/call.ts")).join()`,
  },
  {
    name: "import our own modules by a data module",
    code:
      `return Object.keys(await import("data:text/javascript,export*from'" + OURS + "functions/isolate/call.ts'"))[0]`,
  },
  {
    name: "import from the network",
    code: `return Object.keys(await import("http://127.0.0.1:" + PORT + "/x.js")).length`,
  },
  { name: "start a thread", code: `new Worker("data:text/javascript,0", { type: "module" }); return 1` },
  {
    name: "start a thread by node",
    code: `new (await import("node:worker_threads")).Worker("0", { eval: true }); return 1`,
  },
  {
    name: "start a thread by node, imported by a data module",
    code:
      `new (await import("data:text/javascript,export{Worker}from'node:worker_threads'")).Worker("0", { eval: true }); return 1`,
  },
  {
    name: "start a thread by node, imported by a blob module",
    code:
      `const url = URL.createObjectURL(new Blob(["export*from'worker_threads'"], { type: "text/javascript" }));
      new (await import(url)).Worker("0", { eval: true }); return 1`,
  },
  { name: "open an inspector", code: `(await import("node:inspector")).open(0); return 1` },
  { name: "leave by node:vm", code: `return (await import("node:vm")).runInThisContext("1")` },
  { name: "collect garbage", code: `gc(); return 1` },
  { name: "store on the disk", code: `localStorage.setItem("a", "b"); return 1` },
  { name: "cache on the disk", code: `await caches.open("a"); return 1` },
  { name: "end the process", code: `Deno.exit(3); return 1` },
  { name: "end the process by process", code: `process.exit(3); return 1` },
  { name: "abort the process", code: `process.abort(); return 1` },
  { name: "close the window", code: `close(); return 1` },
  { name: "write to standard output", code: `Deno.stdout.writeSync(new Uint8Array(1)); return 1` },
  { name: "ask the terminal", code: `return prompt("?")` },
  { name: "change JSON", code: `JSON.parse = () => 1; return 1` },
  { name: "replace JSON", code: `globalThis.JSON = {}; return 1` },
  { name: "replace Map", code: `globalThis.Map = class {}; return 1` },
  { name: "restore the real Deno", code: `globalThis.Deno = 1; return 1` },
  {
    name: "read our frames of the stack",
    code: `const prepare = Error.prepareStackTrace;
      try {
        Error.prepareStackTrace = (_error, sites) => sites;
        const seen = new Error().stack.map((site) => site.getThis()).filter((o) => o !== undefined && o !== null);
        return seen.length === 0 ? undefined : 1;
      } finally { Error.prepareStackTrace = prepare; }`,
  },
];

/** The source of an attempt: a module of the app, or a package it imports. */
type Home = "the app" | "an ES module of a package" | "a CommonJS file of a package";

/** More of what only CommonJS files have. */
const commonJsAttempts: readonly Attempt[] = [
  { name: "require fs", code: `return require("fs").readFileSync(SECRET, "utf8")` },
  { name: "require fs/promises", code: `return await require("fs/promises").readFile(SECRET, "utf8")` },
  { name: "require child_process", code: `return require("node:child_process").execSync("true")` },
  { name: "require the module system", code: `return require("module").createRequire(__filename)("fs")` },
  { name: "require a path", code: `return require(SECRET)` },
  { name: "load by the module's class", code: `return module.constructor._load("fs")` },
  { name: "find the main module", code: `return require.main` },
  { name: "find other code's modules", code: `return Object.keys(require.cache)[0]` },
  { name: "find a function that runs files", code: `return Object.keys(require.extensions)[0]` },
  { name: "require by Function", code: `return Function("return require('fs')")()` },
  {
    name: "reach a unix socket by require",
    code: `const s = require("net").connect({ path: SOCKET });
      return await new Promise((resolve, reject) => { s.on("connect", () => resolve(1)); s.on("error", reject); })`,
  },
];

/** A module that tries everything while it loads, and again when it is called. */
function spySource(dir: string, { port, home }: { readonly port: number; readonly home: Home }): string {
  const tried = attemptsOf(home);
  const table = tried.map(({ name, code }) => `${JSON.stringify(name)}: async () => { ${code} },`).join("\n");
  const atLoad = tried.filter(({ handlerOnly }) => handlerOnly !== true).map(({ name }) => name);
  return `"use strict";
    const SECRET = "${dir}/data/secret.json", OUT = "${dir}/functions/out.txt";
    const CACHE = "${new URL(".", import.meta.resolve("zod"))}", OURS = "${new URL(
    "../../../mod/",
    import.meta.url,
  )}";
    const DB = "${dir}/data/other.db", SOCKET = "${dir}/trap.sock", PORT = ${port};
    const load = new Function("specifier", "options", "return import(specifier, options)");
    const attempts = { ${table} };
    async function outcome(name) {
      try {
        const value = await attempts[name]();
        return value === undefined ? "refused" : "ESCAPED " + String(value);
      } catch (error) {
        return "refused: " + error.message;
      }
    }
    const atLoad = {};
    const loading = (async () => {
      for (const name of ${JSON.stringify(atLoad)}) atLoad[name] = await outcome(name);
    })();
    ${home === "a CommonJS file of a package" ? "module.exports =" : "export"} { atLoad, loading, outcome };
  `;
}

/** An `import()` reaches the bundle only. In generated code it reaches the runtime. */
function attemptsOf(home: Home): readonly Attempt[] {
  const all = home === "a CommonJS file of a package" ? [...attempts, ...commonJsAttempts] : attempts;
  const generated = all.filter(({ code }) => code.includes("import("))
    .map((attempt) => ({
      ...attempt,
      name: `${attempt.name}, in generated code`,
      code: attempt.code.replaceAll(/\bimport\((?!')/g, "load("),
    }));
  return [...all.filter(({ generatedOnly }) => generatedOnly !== true), ...generated];
}

function writeApp(
  workspace: Workspace,
  { port, home }: { readonly port: number; readonly home: Home },
): void {
  const { dir } = workspace;
  const files = {
    "index.js": spySource(dir, { port, home }),
    "_later.js": `export const later = 1;`,
    "_common.cjs": `module.exports = require("node:fs").readFileSync("${dir}/data/secret.json", "utf8");`,
  };
  if (home === "the app") {
    workspace.write(
      Object.fromEntries(Object.entries(files).map(([name, text]) => [name.replace("index", "_spy"), text])),
    );
  } else {
    workspace.install(Object.fromEntries(Object.entries(files).map(([name, text]) => [`spy/${name}`, text])));
    const type = home === "an ES module of a package" ? "module" : "commonjs";
    workspace.install({ "spy/package.json": JSON.stringify({ name: "spy", type }) });
  }
  workspace.write({
    "escape.js": `
      import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
      import * as spy from "${home === "the app" ? "./_spy.js" : "spy"}";
      const { atLoad, loading, outcome } = spy;
      await loading;
      const handler = async (_ctx, { name }) => ({ atLoad: atLoad[name], inHandler: await outcome(name) });
      export const inQuery = untypedQuery({ handler });
      export const inMutation = untypedMutation({ handler });
      export const inAction = untypedAction({ handler });
    `,
  });
}

function run(isolate: TestIsolate, role: IsolateRole, name: string): Promise<Answer> {
  switch (role) {
    case "writer":
      return isolate.mutate("escape:inMutation", { name });
    case "reader":
      return isolate.query("escape:inQuery", { name });
    case "runner":
      return isolate.act("escape:inAction", { name });
    default:
      return role satisfies never;
  }
}

for (const home of ["the app", "an ES module of a package", "a CommonJS file of a package"] as const) {
  Deno.test(`${home} is denied everything else, at load and in handlers, in every role`, async (t) => {
    await using server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      () => new Response("reached"),
    );
    await using workspace = new Workspace({});
    writeApp(workspace, { port: server.addr.port, home });
    Deno.writeTextFileSync(`${workspace.dataDir}/secret.json`, `"secret"`);
    using _trap = Deno.listen({ transport: "unix", path: `${workspace.dir}/trap.sock` });
    // The writer creates the database that the reader opens.
    for (const role of ["writer", "reader", "runner"] as const) {
      await using isolate = await workspace.start(role);
      assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
      for (const { name, allowed, handlerOnly } of attemptsOf(home)) {
        if (allowed?.includes(role)) continue;
        await t.step(`${role}: ${name}`, async () => {
          const { value, outcome } = await run(isolate, role, name);
          const { atLoad, inHandler } =
            (value ?? { atLoad: "", inHandler: JSON.stringify(outcome) }) as Record<
              "atLoad" | "inHandler",
              string
            >;
          if (handlerOnly !== true) assert.match(atLoad, /^refused/, "at load");
          assert.match(inHandler, /^refused/, "in a handler");
        });
      }
    }
  });
}
