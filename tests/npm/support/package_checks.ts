/** Checks of the built package: sizes, modules and types of the client. Checks of the installed one: types and Node. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { BINDINGS, ENTRIES, FRAMEWORKS, SMALL_ENTRIES } from "../../../mod/client/build/package_files.ts";
import { projectDir } from "../../support/processes/child.ts";
import { LanguageServer } from "./language_server.ts";
import type { NodeMachine } from "./node_machine.ts";
import {
  API_TYPES,
  AUTH_HOOKS,
  NODE_DRIVER,
  NODE_SCRIPT,
  OWN_FUNCTIONS,
  TEXTS,
  TYPE_CHECK,
} from "./package_sources.ts";

const PACKAGE = join(projectDir, "dist/npm/syncline");

/** Text that only `syncline/server` has, and the package that it needs. */
const ONLY_FUNCTIONS = /"searchField"|ZodError|from "zod"/;

/** Entries whose declarations are checked with an older library than apps name. */
const DECLARED = ["client", "server", "test"];

const KIB = 1024;
/** Entries that add a feature to the client, and in `react/` to the hooks. */
const FEATURES = ["accounts", "presence", "streams"];
/** Maximum sizes of the client, the hooks, each feature of both, each other framework, the other entries, and the account forms. */
const BYTES_MAX = [
  17 * KIB,
  5 * KIB,
  ...FEATURES.flatMap(() => [KIB, KIB]),
  ...BINDINGS.map(() => 2 * KIB),
  ...SMALL_ENTRIES.map(() => KIB),
  8 * KIB,
];

function read(name: string): Promise<string> {
  return Deno.readTextFile(join(PACKAGE, name));
}

/** Checks the sizes that the build printed. */
export function checkSizes(printed: string): void {
  const sizes = [...printed.matchAll(/: (\d+) bytes gzipped, within the limit of (\d+)/g)]
    .map(([, bytes, max]) => [Number(bytes), Number(max)]);
  assert.deepEqual(sizes.map(([, max]) => max), BYTES_MAX);
  assert.ok(sizes.every(([bytes = Infinity, max = 0]) => bytes > 100 && bytes <= max), printed);
}

/** The declarations of the client and the hooks, and those they import, need no package but the framework. */
export async function checkClientTypes(): Promise<void> {
  const features = FEATURES.flatMap((name) => [`${name}.d.ts`, `react/${name}.d.ts`]);
  const bindings = [...BINDINGS, ...SMALL_ENTRIES].map((name) => `${name}.d.ts`);
  const waiting = ["client.d.ts", "react.d.ts", "react/account-forms.d.ts", ...features, ...bindings];
  const checked = new Set(waiting);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    // Examples in comments import other packages.
    const code = (await read(name)).replaceAll(/\/\*[^]*?\*\//g, "");
    for (const [, from = ""] of code.matchAll(/(?:from|import) ['"]([^'"]+)['"]/g)) {
      if (FRAMEWORKS.includes(from)) continue;
      assert.ok(from.startsWith("."), `${name} imports ${from}`);
      const imported = join(dirname(name), from.replace(/\.js$/, ".d.ts"));
      if (!checked.has(imported)) waiting.push(imported);
      checked.add(imported);
    }
  }
}

/** The hooks are a client module for frameworks with server components. */
export async function checkServerComponents(): Promise<void> {
  const exported = (text: string) =>
    /export \{([^}]*)\};\s*$/.exec(text)?.[1]?.split(/[\s,]+/).filter(Boolean);
  const [hooks, server] = [await read("react.js"), await read("react_server.js")];
  assert.match(hooks, /^"use client";\n/);
  assert.deepEqual(exported(server)?.toSorted(), exported(hooks)?.toSorted());
  assert.match(server, /from "\.\/react\.js"/);
  assert.match(server, /function preloadQuery/);
  assert.doesNotMatch(server, /from "react"/);
}

/** The page that the app built has no code that only functions need. */
export async function checkPageCode(machine: NodeMachine): Promise<void> {
  const assets = machine.at("my-app/dist/assets");
  const scripts = (await Array.fromAsync(Deno.readDir(assets))).map(({ name }) => name)
    .filter((name) => name.endsWith(".js"));
  assert.ok(scripts.length > 0);
  assert.match(await read("server.js"), ONLY_FUNCTIONS);
  for (const name of scripts) {
    assert.doesNotMatch(await Deno.readTextFile(join(assets, name)), ONLY_FUNCTIONS, name);
  }
}

/**
 * In plain Node a client subscribes, calls, and does not keep the program running. `checkTypes` checks the types of the files
 * that this writes.
 */
export async function checkPlainNode(machine: NodeMachine, url: string): Promise<void> {
  const write = (name: string, text: string) => Deno.writeTextFile(machine.at("script", name), text);
  await Deno.mkdir(machine.at("script"));
  // The package is found in the folder above.
  await Deno.symlink(machine.at("my-app/node_modules"), machine.at("node_modules"));
  const dependencies = { ws: "8.23.0", "@types/node": "20.19.43", "@types/ws": "8.18.2" };
  await write("package.json", JSON.stringify({ private: true, type: "module", dependencies }));
  await write("tasks.mjs", NODE_SCRIPT);
  await write("driver.mjs", NODE_DRIVER);
  await write(
    "declarations.ts",
    DECLARED.map((name) => `export * as ${name} from "syncline/${name}";\n`).join(""),
  );
  const types = ["node"];
  const compilerOptions = { target: "ES2022", module: "NodeNext", lib: ["ES2022"], types, ...STRICT };
  await write("tsconfig.json", JSON.stringify({ compilerOptions, include: ["."] }));
  await machine.done("npm install --ignore-scripts --prefer-offline", { at: "script" });
  const { text } = await machine.done(`node tasks.mjs ${url}`, { at: "script" });
  assert.deepEqual(JSON.parse(text), { isSame: true, isRefused: true, transport: "webSocket" });
  const kit = "node_modules/.bin/syncline conformance --only fragments,keepalive -- node driver.mjs";
  assert.match(
    (await machine.done(`../my-app/${kit}`, { at: "script" })).text,
    /^ok {7}fragments: .*\nok {7}keepalive: .*\nThe client passed\n$/,
  );
}

/**
 * Checks the types of the script for plain Node, of a module that imports all entries for pages, and of a template's app whose
 * check is `tsc`. The package's declarations are checked as well, those for pages with the library of browsers. The frameworks are
 * installed. One process checks all three, because reading the compiler and its library takes most of the time.
 */
export async function checkTypes(machine: NodeMachine, app: string): Promise<void> {
  const write = (name: string, text: string) => Deno.writeTextFile(machine.at("declarations", name), text);
  await Deno.mkdir(machine.at("declarations"));
  const names = Object.keys(ENTRIES).filter((name) => name !== "server");
  await write(
    "index.ts",
    names.map((name, i) => `export * as entry${i} from "syncline/${name}";\n`).join(""),
  );
  const compilerOptions = {
    ...STRICT,
    target: "ES2022",
    module: "ESNext",
    moduleResolution: "bundler",
    lib: ["ES2022", "DOM"],
    types: [],
  };
  await write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["index.ts"] }));
  await Deno.writeTextFile(machine.at("my-app/type_check.mjs"), TYPE_CHECK);
  const configs = ["script", "declarations", app].map((folder) => machine.at(folder, "tsconfig.json"));
  const { text } = await machine.run(`node type_check.mjs ${configs.join(" ")}`, { at: "my-app" });
  const { errors, checked } = JSON.parse(text) as { errors: string[]; checked: string[][] };
  assert.deepEqual(errors, []);
  const expected = [
    ["/script/tasks.mjs", "/script/driver.mjs", ...DECLARED.map((name) => `/syncline/${name}.d.ts`)],
    names.map((name) => `/syncline/${name}.d.ts`),
    [`/${app}/src/main.tsx`, `/${app}/functions/tasks.ts`, `/${app}/tests/tasks.test.ts`],
  ];
  const missing = expected.map((names, at) =>
    names.filter((name) => !checked[at]?.some((file) => file.endsWith(name)))
  );
  assert.deepEqual(missing, [[], [], []], "checked without these");
}

/** The command that a template's build starts with. It checks the types. */
export async function typeCheckOf(machine: NodeMachine, app: string): Promise<string> {
  const { scripts } = JSON.parse(await Deno.readTextFile(machine.at(app, "package.json")));
  const [, check = ""] = /^(\S+) && vite build$/.exec(scripts.build) ?? [];
  assert.notEqual(check, "", scripts.build);
  assert.equal(scripts.test, "vitest run --testTimeout=30000");
  return check;
}

/** A template for another framework has the functions and tests of the app for React, whose tests run in Vitest. */
export async function checkSharedFiles(machine: NodeMachine, app: string): Promise<void> {
  for (const name of ["functions/schema.ts", "functions/tasks.ts", "tests/tasks.test.ts"]) {
    const [text, above] = await Promise.all(
      [app, "my-app"].map((folder) => Deno.readTextFile(machine.at(folder, name))),
    );
    assert.equal(text, above, name);
  }
  const files = await Array.fromAsync(Deno.readDir(machine.at(app, "tests")));
  assert.deepEqual(files.map(({ name }) => name), ["tasks.test.ts"]);
}

/** The packages that a template imports are in its manifest, with the ranges of the app in the folder above. */
export async function checkTemplateManifest(machine: NodeMachine, name: string): Promise<void> {
  const declared = async (...path: string[]): Promise<Readonly<Record<string, string>>> => {
    const text = await Deno.readTextFile(machine.at(...path, "package.json"));
    const { dependencies, devDependencies } = JSON.parse(text);
    return { ...dependencies, ...devDependencies };
  };
  const [ranges, above] = await Promise.all([declared("my-app", name), declared("my-app")]);
  const shared = Object.keys(ranges).filter((name) => name in above);
  assert.ok(shared.includes("syncline"));
  const rangesOf = (all: typeof ranges) => shared.map((name) => `${name}@${all[name]}`);
  assert.deepEqual(rangesOf(ranges), rangesOf(above));
  const imported = new Set<string>();
  for await (const text of sourcesIn(machine.at("my-app", name))) {
    for (const [, from = ""] of text.matchAll(/(?:\bfrom|\bimport)[\s(]+"([^"./][^"]*)"/g)) {
      const [scope = "", inner] = from.split("/");
      if (!from.startsWith("node:")) imported.add(scope.startsWith("@") ? `${scope}/${inner}` : scope);
    }
  }
  assert.ok(imported.has("vitest") && imported.has("zod"), "imports were found");
  assert.deepEqual([...imported].filter((name) => !(name in ranges)), [], `${name} does not declare these`);
}

async function* sourcesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    if (isDirectory && name !== "node_modules") yield* sourcesIn(path);
    else if (/\.(?:tsx?|vue|svelte)$/.test(name)) yield await Deno.readTextFile(path);
  }
}

const STRICT = { allowJs: true, checkJs: true, strict: true, noEmit: true };

/** Writes files into the app whose marked lines, and no others, are type errors. Returns how to remove them. */
export async function writeTypeTests(machine: NodeMachine): Promise<() => Promise<void>> {
  const files = Object.entries({
    "my-app/src/api_types.ts": API_TYPES,
    "my-app/src/texts.ts": TEXTS,
    "my-app/functions/auth.ts": AUTH_HOOKS,
    "my-app/functions/own.ts": OWN_FUNCTIONS,
  });
  for (const [name, text] of files) await Deno.writeTextFile(machine.at(name), text);
  return async () => {
    for (const [name] of files) await Deno.remove(machine.at(name));
  };
}

/** An editor completes names, fields and names in strings, and finds definitions. */
export async function checkEditor(machine: NodeMachine): Promise<void> {
  await using editor = new LanguageServer(machine.at("my-app"));
  const file = machine.at("my-app/src/tasks.tsx");
  const text = (await Deno.readTextFile(file)).replace(
    "useQuery(api.tasks.list)",
    "useQuery(api.tasks.list)?.[0]?.text",
  );
  await editor.open(file, text);
  const names = await editor.completions(file, { text, behind: "useQuery(api.tasks." });
  assert.deepEqual(names.toSorted(), ["add", "list", "remove", "seed", "setDone"]);
  const fields = await editor.completions(file, { text, behind: "list)?.[0]?." });
  assert.deepEqual(["_id", "by", "done", "text"].filter((name) => !fields.includes(name)), []);
  const [definition = ""] = await editor.definitions(file, { text, name: "api.tasks.list" });
  assert.match(definition, /my-app\/functions\/tasks\.ts$/);

  const texts = machine.at("my-app/src/texts.ts");
  await editor.open(texts, TEXTS);
  const mutations = await editor.completions(texts, { text: TEXTS, behind: 'client.mutation("' });
  assert.deepEqual(mutations.filter((name) => name.includes(":")).toSorted(), [
    "tasks:add",
    "tasks:remove",
    "tasks:setDone",
  ]);
  const found = await editor.completions(texts, { text: TEXTS, behind: 'useQuery("tasks:list")?.[0]?.' });
  assert.ok(found.includes("done"));
  const own = machine.at("my-app/functions/own.ts");
  await editor.open(own, OWN_FUNCTIONS);
  const paths = await editor.completions(own, { text: OWN_FUNCTIONS, behind: 'await ctx.runQuery("' });
  assert.deepEqual(["tasks:list", "own:twice"].filter((path) => !paths.includes(path)), []);
}
