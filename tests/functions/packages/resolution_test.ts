/** Packages of functions: resolution, loading, and errors for missing packages. */
import assert from "node:assert/strict";
import { bundleApp } from "../../../mod/functions/packages/mod.ts";
import { packageRoots } from "../../../mod/functions/packages/package_roots.ts";
import { type AppFiles, Workspace } from "../isolate/support.ts";
import { TempFolder } from "../../support/temp_folder.ts";

interface Scenario {
  readonly name: string;
  /** By path below `node_modules`. */
  readonly installed: AppFiles;
  /** Of `query.ts`: imports, and an expression that uses them. */
  readonly imports: string;
  readonly use: string;
  readonly result: unknown;
}

const named = (fields: Record<string, unknown>) => JSON.stringify({ name: "p", ...fields });

const scenarios: readonly Scenario[] = [
  {
    name: "a package of ES modules",
    installed: {
      "p/package.json": named({ type: "module", exports: { ".": "./main.js", "./sub/*": "./parts/*.js" } }),
      "p/main.js": `export { half } from "./parts/half.js"; export default "main";`,
      "p/parts/half.js": `export const half = (n) => n / 2;`,
    },
    imports: `import main, { half } from "p"; import { half as same } from "p/sub/half";`,
    use: `[main, half(4), half === same]`,
    result: ["main", 2, true],
  },
  {
    name: "a package of CommonJS files, with JSON, a folder, a circle and names of another file",
    installed: {
      "p/package.json": named({ main: "lib" }),
      "p/lib/index.js": `#!/usr/bin/env node
        exports.before = true;
        const circle = require("./circle");
        __exportStar(require("./more.js"), exports);
        function __exportStar(m, e) { for (const k in m) if (k !== "default") e[k] = m[k]; }
        exports.seen = circle.seen();
        exports.version = require("../package.json").name;
        exports.place = [__filename, __dirname].join();`,
      "p/lib/circle/index.js": `const whole = require(".."); exports.seen = () => whole.before === true;`,
      "p/lib/more.js": `exports.more = this === module.exports && typeof require.resolve("./circle");
        exports["not-a-name"] = 1;`,
      "p/lib/circle.txt": "",
    },
    imports: `import whole, { before, more, place, seen, version } from "p";`,
    use: `[before, more, place, seen, version, whole["not-a-name"], whole.more === more]`,
    result: [true, "string", "/bundle.js,/", true, "p", 1, true],
  },
  {
    name: "imports that are not used, of packages and of files, which the bundler removes",
    installed: { "p/index.js": `module.exports = "p";` },
    imports:
      `import p from "p"; import { z } from "zod"; import { x } from "gone"; import { y } from "./gone.ts";`,
    use: `[p]`,
    result: ["p"],
  },
  {
    name: "imports of a package's own that are the runtime's modules",
    installed: {
      "p/package.json": named({
        type: "module",
        imports: {
          "#crypto": { node: "node:crypto", default: "./none.js" },
          "#files": "fs",
          "#path": "path",
        },
      }),
      "p/index.js": `import { createHash } from "#crypto"; import files, { readdirSync } from "#files";
        import q from "./q.cjs";
        const tried = [() => files.readdirSync("/"), () => readdirSync("/"), () => q.files.readdirSync("/")].map((f) => {
          try { return f(); } catch (error) { return error.message; }
        });
        export default [typeof createHash, typeof q.path.join, ...new Set(tried)];`,
      "p/q.cjs": `exports.path = require("#path"); exports.files = require("#files");`,
    },
    imports: `import p from "p";`,
    use: `p`,
    result: ["function", "function", "fs.readdirSync: node:fs is not available to app code"],
  },
  {
    name: "an ES module that a CommonJS file requires, and one that it imports",
    installed: {
      "p/package.json": named({}),
      "p/index.js": `exports.late = () => import("./late.mjs"); exports.file = () => import("./file.cjs");
        exports.early = require("q").q;`,
      "p/late.mjs": `export const late = "late";`,
      "p/file.cjs": `exports.file = "file";`,
      "q/package.json": named({ name: "q", type: "module", main: "i.js" }),
      "q/i.js": `export const q = "early";`,
    },
    imports: `import p from "p";`,
    use: `[p.early, (await p.late()).late, (await p.file()).file, (await p.file()).default.file]`,
    result: ["early", "late", "file", "file"],
  },
  {
    name: "modules of the runtime, ours, and modules that are refused only when used",
    installed: {
      "p/index.js":
        `const { EventEmitter } = require("events"); const fs = require("fs"); const http = require("http");
        const tty = require("tty"); const agent = new http.Agent(); class Own extends http.ClientRequest {}
        exports.path = require("node:path").join("a", "b"); exports.emitter = typeof EventEmitter;
        exports.methods = http.METHODS.includes("GET"); exports.terminal = tty.isatty(1);
        exports.fault = () => { try { fs.readFileSync("/etc/hostname"); } catch (error) { return error.message; } };
        exports.zod = typeof require("zod").z.string; exports.pid = process.pid;`,
    },
    imports: `import p from "p";`,
    use: `[p.path, p.emitter, p.methods, p.terminal, p.fault(), p.zod, p.pid]`,
    result: [
      "a/b",
      "function",
      true,
      false,
      "fs.readFileSync: node:fs is not available to app code",
      "function",
      1,
    ],
  },
  {
    name: "a missing package that the importing module handles",
    installed: {
      "p/index.js":
        `let other = "none"; try { other = require("missing"); } catch (error) { other = error.code; } module.exports = other;`,
    },
    imports: `import p from "p"; const gone = await import("missing").catch(() => "gone");`,
    use: `[p, gone]`,
    result: ["MODULE_NOT_FOUND", "gone"],
  },
  {
    name: "files of a package by computed names, and files that are not code",
    installed: {
      "p/index.js":
        `exports.part = (name) => require("./parts/" + name); exports.file = (name) => require("./" + name);`,
      "p/README.md": "# A package",
      "p/LICENSE": "Free",
      "p/parts/one.js": `module.exports = "first";`,
      "p/parts/two.json": `"second"`,
    },
    imports: `import p from "p"; let gone; try { p.part("three"); } catch { gone = "gone"; }`,
    use: `[p.part("one.js"), p.part("two.json"), p.file("parts/one.js"), gone]`,
    result: ["first", "second", "first", "gone"],
  },
  {
    name: "a package for its effects, although it declares to have none",
    installed: {
      "p/package.json": named({ type: "module", sideEffects: false }),
      "p/index.js": `globalThis.effect = "seen";`,
    },
    imports: `import "p";`,
    use: `(globalThis as unknown as { effect: string }).effect`,
    result: "seen",
  },
];

for (const { name, installed, imports, use, result } of scenarios) {
  Deno.test(`functions use ${name}`, async () => {
    await using workspace = new Workspace({
      "a.ts": `import { untypedQuery } from "syncline/server"; ${imports}
        export const run = untypedQuery(async () => (${use}));`,
    });
    workspace.install(installed);
    // The writer makes the database.
    await using writer = await workspace.start("writer");
    assert.equal(writer.booted?.type, "Ready", JSON.stringify(writer.booted));
    await using isolate = await workspace.start("reader");
    const { value, outcome } = await isolate.query("a:run");
    assert.deepEqual(value, result, JSON.stringify(outcome));
  });
}

/** Imports that make an app broken, and the message. */
const faults: readonly (readonly [name: string, installed: AppFiles, imports: string, message: RegExp])[] = [
  [
    "a package that is not installed",
    { "other/index.js": "" },
    `import "@a/b/c";`,
    /^a\.ts:1:8: cannot find "@a\/b\/c": packages are installed .*\(npm install @a\/b\)/,
  ],
  [
    "a package that a package misses",
    { "p/package.json": named({ type: "module" }), "p/index.js": `import "gone";` },
    `import "p";`,
    /p\/index\.js:1:8: cannot find "gone", which \S+\/node_modules\/p\/index\.js imports: .*npm install gone/,
  ],
  [
    "a file that is not there, required",
    { "p/index.js": `require("./gone");` },
    `import "p";`,
    /\/node_modules\/p\/index\.js:1:9: cannot find the file "\.\/gone"/,
  ],
  [
    "a native addon",
    { "p/index.js": `require("./build/x.node");`, "p/build/x.node": "" },
    `import "p";`,
    /x\.node is a native addon/,
  ],
  [
    "a part that the package keeps to itself",
    { "p/package.json": named({ exports: { ".": "./index.js" } }), "p/index.js": "", "p/own.js": "" },
    `import "p/own.js";`,
    /^a\.ts:1:8: cannot import "p\/own\.js": the path "\.\/own\.js" is not exported/,
  ],
  [
    "a mistake in a package",
    { "p/index.js": "\nlet a = ;" },
    `import "p";`,
    /\/node_modules\/p\/index\.js:2:9: Unexpected ";"/,
  ],
  [
    "an error of a package",
    { "p/index.js": "\n\nthrow new Error('bad luck');" },
    `import "p";`,
    /bad luck \(in file:\S+\/node_modules\/p\/index\.js:3:7\)/,
  ],
];

for (const [name, installed, imports, message] of faults) {
  Deno.test(`an app is broken with the reason by ${name}`, async () => {
    await using workspace = new Workspace({ "a.ts": imports });
    workspace.install(installed);
    assert.match(await brokenBy(workspace), message);
  });
}

/** The reason why an app is broken: it cannot be bundled, or not be loaded. */
async function brokenBy(workspace: Workspace): Promise<string> {
  const reason = await workspace.version().then(() => null, (error: Error) => error.message);
  if (reason !== null) return reason;
  await using isolate = await workspace.start("writer");
  assert.equal(isolate.booted?.type, "Broken");
  return isolate.booted.message;
}

Deno.test("packages may be links within the project, as pnpm and workspaces make them, and nowhere else", async () => {
  await using workspace = new Workspace({
    "a.ts":
      `import { untypedQuery } from "syncline/server"; import p from "p"; import { shared } from "@own/shared";
      export const run = untypedQuery(() => [p, shared]);`,
  });
  const store = ".store/p@1/node_modules";
  workspace.install({
    [`${store}/p/index.js`]: `module.exports = "p with " + require("dep");`,
    [`${store}/dep/index.js`]: `module.exports = "dep";`,
    "@own/readme": "",
  });
  workspace.write({ "../shared/package.json": `{"type":"module","exports":"./shared.ts"}` });
  workspace.write({ "../shared/shared.ts": `export const shared: string = "shared";` });
  Deno.symlinkSync(`${store}/p`, `${workspace.dir}/node_modules/p`);
  Deno.symlinkSync("../../shared", `${workspace.dir}/node_modules/@own/shared`);
  {
    await using isolate = await workspace.start("writer");
    assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
  }
  {
    await using isolate = await workspace.start("reader");
    assert.deepEqual((await isolate.query("a:run")).value, ["p with dep", "shared"]);
  }
  await using elsewhereFolder = new TempFolder();
  const elsewhere = elsewhereFolder.path;
  await Deno.writeTextFile(`${elsewhere}/index.js`, `module.exports = "stolen";`);
  Deno.removeSync(`${workspace.dir}/node_modules/p`);
  Deno.symlinkSync(elsewhere, `${workspace.dir}/node_modules/p`);
  assert.match(
    await brokenBy(workspace),
    /^a\.ts:1:63: cannot import "p": it is a link to .*outside the project/,
  );
});

Deno.test("an app can import only the packages that it declares", async () => {
  await using workspace = new Workspace({ "a.ts": `import "p";\nimport "@q/q/sub.js";` });
  workspace.install({
    "p/index.js": `require("dep");`,
    "dep/index.js": "",
    "@q/q/sub.js": "",
  });
  const declare = (fields: object) => workspace.write({ "../package.json": JSON.stringify(fields) });
  declare({ dependencies: { p: "1" } });
  await assert.rejects(workspace.version(), {
    message:
      `a.ts:2:8: the package "@q/q" is installed for other packages only: add it to the app's package.json (npm install @q/q)`,
  });
  declare({ dependencies: { p: "1" }, devDependencies: { "@q/q": "1" } });
  await workspace.version();
});

Deno.test("a file of a package that is a link to one outside is not run", async () => {
  await using workspace = new Workspace({ "a.ts": `import p from "p"; console.log(p);` });
  workspace.install({
    "p/package.json": named({ type: "module" }),
    "p/index.js": `export { default } from "./link.cjs";`,
  });
  Deno.writeTextFileSync(`${workspace.dataDir}/main.cjs`, `module.exports = "stolen";`);
  Deno.symlinkSync(`${workspace.dataDir}/main.cjs`, `${workspace.dir}/node_modules/p/link.cjs`);
  await assert.rejects(
    workspace.version(),
    /p\/link\.cjs is a link to .*main\.cjs, which is outside the project/,
  );
});

Deno.test("an import with a computed name does not reach files outside of the project", async () => {
  for (const path of ["../secret/${name}.json", "./in/${name}.json"]) {
    await using workspace = new Workspace({
      "a.ts": `export const load = (name: string) => import(\`${path}\`);`,
      "in/own.json": "1",
    });
    workspace.write({ "../secret/key.json": `"secret"` });
    Deno.symlinkSync(`${workspace.dir}/secret/key.json`, `${workspace.functionsDir}/in/key.json`);
    await assert.rejects(workspace.version(), /key\.json is outside the project of the app/);
  }
});

Deno.test("errors in the code of other servers do not quote files of this one", async () => {
  await using folder = new TempFolder();
  const work = `${folder.path}/work`;
  const key = `${folder.path}/secret.key`;
  await Deno.mkdir(`${work}/functions`, { recursive: true });
  await Deno.writeTextFile(key, "c2VjcmV0");
  await Deno.writeTextFile(`${work}/functions/a.ts`, `import a from "${key}" with { type: "json" }; a();`);
  const made = bundleApp({ functionsDir: `${work}/functions`, dataDir: folder.path, within: work });
  await assert.rejects(made, (error: Error) => {
    assert.equal(error.message, `${key} is outside the project of the app`);
    return true;
  });
});

Deno.test("no folder with the data is readable, however it is linked", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  for (const path of ["app/functions", "app/node_modules", "app/data", "app/lib"]) {
    await Deno.mkdir(`${dir}/${path}`, { recursive: true });
  }
  await Deno.symlink(`${dir}/app`, `${dir}/app/node_modules/whole`);
  await Deno.symlink(`${dir}/app/data`, `${dir}/app/node_modules/data`);
  await Deno.symlink(`${dir}/app/lib`, `${dir}/app/node_modules/lib`);
  const place = { functionsDir: `${dir}/app/functions`, dataDir: `${dir}/app/data` };
  const roots = packageRoots(place).filter((root) => root.startsWith(dir));
  assert.deepEqual(roots, [`${dir}/app/node_modules`, `${dir}/app/lib`]);
  const inside = packageRoots({ ...place, dataDir: `${dir}/app/node_modules/.data` });
  assert.deepEqual(inside.filter((root) => root.startsWith(`${dir}/app/node_modules`)), []);
});

Deno.test("added and changed packages are seen by the next version", async () => {
  await using workspace = new Workspace({
    "a.ts": `import "p"; try { require("q"); } catch { /* optional */ }`,
  });
  workspace.install({ "p/index.js": "exports.one = 1;" });
  const first = await workspace.version();
  workspace.install({ "q/index.js": "" });
  const second = await workspace.version();
  assert.notEqual(second.hash, first.hash, "q is there now");
  assert.equal((await workspace.version()).hash, second.hash);
  workspace.install({ "p/index.js": "exports.one = 1; exports.two = 2;" });
  const third = await workspace.version();
  assert.notEqual(third.hash, second.hash);
  assert.match(Deno.readTextFileSync(third.bundle), /exports\.two = 2/);
});

Deno.test("a bundle depends on the code only, not on where it is", async () => {
  const app = { "a.ts": `import { z } from "zod"; import p from "p"; export const a = [z, p];` };
  const versions = [];
  for (const _place of ["here", "elsewhere"]) {
    await using workspace = new Workspace(app);
    workspace.install({ "p/index.js": `module.exports = require("node:path").join("a", __dirname);` });
    versions.push((await workspace.version()).hash);
  }
  assert.equal(versions[0], versions[1]);
});

Deno.test("the app's files are imported by their full names, only from the functions folder", async () => {
  const faults: readonly (readonly [imports: string, message: RegExp])[] = [
    [`import "./b";`, /^a\.ts:1:8: cannot find the file "\.\/b": name it with its extension \(b\.ts\)$/],
    [
      `import "./b.js";`,
      /^a\.ts:1:8: cannot find the file "\.\/b\.js": name it with its extension \(b\.ts\)$/,
    ],
    [`import "./c";`, /"\.\/c" is a folder: name the file in it, such as "\.\/c\/index\.ts"/],
    [`import "./none.ts";`, /^a\.ts:1:8: cannot find the file "\.\/none\.ts"$/],
    [
      `\n import "../beside.ts";`,
      /^a\.ts:2:9: \S+\/beside\.ts is outside the functions folder: move or copy it/,
    ],
    [`import "npm:ms@2";`, /^a\.ts:1:8: cannot import an "npm:" or "jsr:" address: .*\(npm install ms\)/],
    [`import "https://example.com/a.js";`, /^a\.ts:1:8: cannot import from the network/],
    [`let a = ;`, /^a\.ts:1:9: Unexpected ";"$/],
  ];
  await using workspace = new Workspace({ "b.ts": "export {};", "c/index.ts": "export {};" });
  workspace.write({ "../beside.ts": "export {};" });
  for (const [imports, message] of faults) {
    workspace.write({ "a.ts": imports });
    assert.match(await brokenBy(workspace), message);
  }
});
