/** Static imports of the runtime's modules: the runtime resolves them differently, but must return our stand-ins. */
import assert from "node:assert/strict";
import { builtinModules } from "node:module";
import { importMapPath } from "../../../mod/functions/host/process/start_flags.ts";
import type { IsolateRole } from "../../../mod/functions/wire/messages.ts";
import { type Answer, type AppFiles, type TestIsolate, Workspace } from "./support.ts";

/** Names that belong to packages without `node:`. */
const prefixed = new Set(["ffi", "quic", "sea", "sqlite", "test", "test/reporters"]);

/** Modules that are not refused as a whole: app code gets our own. */
const ours = new Set(["process", "async_hooks", "syncline/server", "zod"]);

/** The modules that are refused in a role, with and without `node:`. Some have no other name. */
function refused(role: IsolateRole): string[] {
  const { imports } = JSON.parse(Deno.readTextFileSync(importMapPath(role))) as {
    readonly imports: Readonly<Record<string, string>>;
  };
  return Object.keys(imports).filter((specifier) =>
    !ours.has(specifier.replace(/^node:/, "")) && !prefixed.has(specifier)
  );
}

/** Those that are open in it. */
function open(role: IsolateRole): string[] {
  const closed = new Set(refused(role));
  return builtinModules.filter((name) => !closed.has(name) && !closed.has(`node:${name}`));
}

/** Imports of apps, in an order that has revealed the runtime's own behavior, or could. */
const orders: Readonly<Record<string, (role: IsolateRole) => readonly string[]>> = {
  "a thread alone": () => ["node:worker_threads"],
  "a thread without node:": () => ["worker_threads"],
  "a thread before our own modules": () => ["node:worker_threads", "syncline/server", "zod"],
  "a thread before another refused module": () => ["node:worker_threads", "node:net", "node:fs"],
  "all as they are listed": refused,
  "all from the last": (role) => refused(role).reverse(),
  "all after those that are open": (role) => [...open(role), ...refused(role)],
  "all before those that are open": (role) => [...refused(role), ...open(role)],
};

/** A module that imports these in this order; its `real` are those refused ones that do more than to throw. */
function importing(specifiers: readonly string[], role: IsolateRole): string {
  const closed = new Set(refused(role));
  const watched = specifiers.flatMap((specifier, at) =>
    closed.has(specifier) ? [`[${JSON.stringify(specifier)}, m${at}]`] : []
  );
  return `
    ${specifiers.map((specifier, at) => `import * as m${at} from ${JSON.stringify(specifier)};`).join("\n")}
    const harmless = (value) => typeof value !== "function" ||
      /^(function\\(\\)\\{throw new TypeError|class Agent\\{\\}|\\(\\)=>false)/.test(String(value));
    const parts = (exports) => [...Object.values(exports), ...Object.values(Object(exports.default))];
    export const real = [${watched.join()}]
      .filter(([, exports]) => !parts(exports).every(harmless)).map(([specifier]) => specifier);
  `;
}

/** A module with a function of each kind that returns this expression. */
function functionsOf(expression: string): string {
  return `
    import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    const handler = async () => ${expression};
    export const inQuery = untypedQuery({ handler });
    export const inMutation = untypedMutation({ handler });
    export const inAction = untypedAction({ handler });
  `;
}

function run(isolate: TestIsolate, role: IsolateRole, module: string): Promise<Answer> {
  switch (role) {
    case "writer":
      return isolate.mutate(`${module}:inMutation`);
    case "reader":
      return isolate.query(`${module}:inQuery`);
    case "runner":
      return isolate.act(`${module}:inAction`);
    default:
      return role satisfies never;
  }
}

/** An app, and the packages it has. */
interface App {
  readonly files: AppFiles;
  readonly packages?: AppFiles;
}

/** The results of functions of modules of an app in each role. */
async function inEveryRole(
  app: (role: IsolateRole) => App,
  modules: readonly string[] = ["a"],
): Promise<Record<string, unknown>> {
  await using workspace = new Workspace({});
  const values: Record<string, unknown> = {};
  // The writer makes the database that the reader opens.
  for (const role of ["writer", "reader", "runner"] as const) {
    const { files, packages = {} } = app(role);
    workspace.write(files);
    workspace.install(packages);
    await using isolate = await workspace.start(role);
    assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
    for (const module of modules) {
      const { value, outcome } = await run(isolate, role, module);
      values[`${role}, ${module}`] = outcome.ok ? value : JSON.stringify(outcome);
    }
  }
  return values;
}

/** The same value in each role, for these modules. */
function inAll(value: unknown, modules: readonly string[] = ["a"]): Record<string, unknown> {
  const roles = ["writer", "reader", "runner"];
  return Object.fromEntries(
    roles.flatMap((role) => modules.map((module) => [`${role}, ${module}`, value])),
  );
}

for (const [order, specifiers] of Object.entries(orders)) {
  Deno.test(`refused modules are stand-ins for static imports: ${order}`, async () => {
    const real = await inEveryRole((role) => ({
      files: {
        "_modules.js": importing(specifiers(role), role),
        "a.js": `import { real } from "./_modules.js"; ${functionsOf("real")}`,
      },
    }));
    assert.deepEqual(real, inAll([]));
  });
}

/** The message on starting a thread with the \`Worker\` in scope. */
const starting = `(() => {
  try {
    new Worker("for (;;);", { eval: true }).unref();
    return "started";
  } catch (error) {
    return error.message;
  }
})()`;

const json = JSON.stringify;

/** Ways to a `Worker` without `import()`: the text of a module before its functions. */
const ways: Readonly<Record<string, string>> = {
  "by_name.js": `import { Worker } from "node:worker_threads";`,
  "in_typescript.ts": `import { Worker } from "node:worker_threads";`,
  "without_prefix.js": `import { Worker } from "worker_threads";`,
  "by_default.js": `import threads from "node:worker_threads"; const { Worker } = threads;`,
  "other_spelling.js": `import { Worker } from "node:\\x77orker_threads";`,
  "export_from.js": `import { Worker } from "./_export_from.js";`,
  "export_all.js": `import { Worker } from "./_export_all.js";`,
  "es_package.js": `import { Worker } from "es_spy";`,
  "common_js_package.js": `import { Worker } from "common_js_spy";`,
};

const app: App = {
  files: {
    ...Object.fromEntries(Object.entries(ways).map(([name, text]) => [name, text + functionsOf(starting)])),
    "_export_from.js": `export { Worker } from "node:worker_threads";`,
    "_export_all.js": `export * from "node:worker_threads";`,
  },
  packages: {
    "es_spy/package.json": json({ name: "es_spy", type: "module" }),
    "es_spy/index.js": `export { Worker } from "node:worker_threads";`,
    "common_js_spy/package.json": json({ name: "common_js_spy", type: "commonjs" }),
    "common_js_spy/index.js": `exports.Worker = require("worker_threads").Worker;`,
  },
};

Deno.test("no thread is started by any form of import", async () => {
  const modules = Object.keys(ways).map((name) => name.replace(/\..*/, ""));
  const message = "worker_threads.Worker: node:worker_threads is not available to app code";
  assert.deepEqual(await inEveryRole(() => app, modules), inAll(message, modules));
});

Deno.test("static imports allow no other access to threads or to other code's resources", async () => {
  const tried = `[
    () => createRequire(import.meta.url)("node:worker_threads"),
    () => process.getBuiltinModule("node:worker_threads").Worker,
    () => { threads.Worker = Object; },
    () => threads.getEnvironmentData("a"),
    () => new threads.MessageChannel(),
    () => hooks.createHook({}),
  ].map((attempt) => {
    try {
      attempt();
      return "done";
    } catch (error) {
      return error.message.replace(/^.*: /, "");
    }
  })`;
  const values = await inEveryRole(() => ({
    files: {
      "a.js": `
        import * as hooks from "node:async_hooks";
        import { createRequire } from "node:module";
        import process from "node:process";
        import threads from "node:worker_threads";
        ${functionsOf(tried)}
      `,
    },
  }));
  const refusals = [
    "node:module is not available to app code",
    "Cannot read properties of undefined (reading 'Worker')",
    "Cannot assign to read only property 'Worker' of object '#<Object>'",
    "node:worker_threads is not available to app code",
    "node:worker_threads is not available to app code",
    "hooks.createHook is not a function",
  ];
  assert.deepEqual(values, inAll(refusals));
});
