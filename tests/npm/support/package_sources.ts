/** Files that tests write into an app with the installed package. Text, because this project does not have the package. */

/** Types of function references. */
export const API_TYPES = `import { createApi, SynclineClient, SynclineHttpClient } from "syncline/client";
import { useQuery } from "syncline/react";
import { api } from "../functions/_generated.ts";

export async function check(client: SynclineClient, http: SynclineHttpClient): Promise<void> {
  const tasks = await client.query(api.tasks.list, {});
  const text: string | undefined = tasks[0]?.text;
  const done: boolean | undefined = tasks[0]?.done;
  // @ts-expect-error: documents have no such field
  tasks[0]?.title;
  // @ts-expect-error: a mutation is no query
  await client.query(api.tasks.add, { text: "" });
  // @ts-expect-error: an argument is missing
  await http.mutation(api.tasks.add, {});
  // @ts-expect-error: a text is no boolean
  await http.mutation(api.tasks.setDone, { task: tasks[0]!._id, done: "yes" });
  // @ts-expect-error: unknown function
  api.tasks.rename;
  const same = createApi<{ tasks: typeof import("../functions/tasks.ts") }>().api;
  client.subscribe(same.tasks.list, {}, (rows) => rows.map((row) => row.text.length + (done ? 1 : 0)));
  void text;
}

export function useCheck(): number {
  // @ts-expect-error: the result may be loading
  return useQuery(api.tasks.list, {}).length;
}
`;

/** Calls that name functions as text. */
export const TEXTS = `import type { SynclineClient } from "syncline/client";
import { useQuery } from "syncline/react";
import { createTestServer } from "syncline/test";

interface Known {
  tasks: typeof import("../functions/tasks.ts");
  own: typeof import("../functions/own.ts");
}
declare module "syncline/client" {
  interface Register {
    modules: Known;
  }
}

export async function use(client: SynclineClient) {
  const [task] = await client.query("tasks:list");
  const text: string | undefined = task?.text;
  const done = useQuery("tasks:list")?.[0]?.done;
  await client.mutation("tasks:add", { text: done ? "typed" : "" });
  // @ts-expect-error -- unknown function
  await client.query("tasks:lst");
  // @ts-expect-error -- an argument has the wrong type
  await client.mutation("tasks:add", { text: 1 });
  const server = await createTestServer({ functionsDir: "/functions" });
  const first: string | undefined = (await server.query("tasks:list"))[0]?.text;
  // @ts-expect-error -- unknown function
  await server.query("tasks:any");
  return [text, first];
}
`;

/** A function of the app that names others as text. */
export const OWN_FUNCTIONS = `import { untypedQuery } from "syncline/server";

export const twice = untypedQuery({
  handler: async (ctx) => {
    const tasks = await ctx.runQuery("tasks:list");
    // @ts-expect-error -- unknown function
    await ctx.runQuery("tasks:lst");
    // @ts-expect-error -- a mutation is no query
    await ctx.runQuery("tasks:add", { text: "typed" });
    return tasks.map(({ text, done }) => text.repeat(done ? 2 : 1));
  },
});
`;

/** A hook of accounts, whose arguments the package declares. */
export const AUTH_HOOKS = `import { authEventArgs } from "syncline/server";
import { internalMutation } from "./schema.ts";

export const onUserCreated = internalMutation({
  args: authEventArgs,
  handler: async (ctx, { user, by }) => {
    await ctx.db.insert("tasks", { text: by, done: false, by: user });
  },
});
`;

/** Functions that import a CommonJS package, which reads the environment when it is loaded. */
export const PACKAGED_FUNCTIONS = `import { version } from "react";
import { id } from "syncline/server";
import { mutation, query } from "./schema.ts";

export const react = query(() => version);
export const fails = query(() => {
  throw new Error(\`with React \${version}\`);
});
export const uploadUrl = mutation((ctx) => ctx.storage.generateUploadUrl());
export const link = query({ args: { file: id("_storage") }, handler: (ctx, { file }) => ctx.storage.getUrl(file) });
`;

/** Tests of the app in Vitest. */
export const REFERENCES_TEST = `import { createTestServer } from "syncline/test";
import { expect, test } from "vitest";
import { api } from "../functions/_generated.ts";

/** One pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("functions use npm packages and thumbnails", async () => {
  const server = await createTestServer({ functionsDir: new URL("../functions", import.meta.url) });
  try {
    expect(await server.query("packaged:react")).toMatch(/^19\\./);
    await expect(server.query("packaged:fails")).rejects.toThrow("with React 19");
    const url = await server.mutation("packaged:uploadUrl") as string;
    const file = await server.upload(url, new Blob([Buffer.from(PNG, "base64")], { type: "image/png" }));
    const link = await server.query("packaged:link", { file }) as string;
    const thumbnail = await server.fetch(\`\${link}?thumb=16x16\`);
    expect([thumbnail.status, thumbnail.headers.get("Content-Type")]).toEqual([200, "image/png"]);
  } finally {
    await server.close();
  }
});

test("server.run calls functions by reference", async () => {
  const server = await createTestServer({ functionsDir: new URL("../functions", import.meta.url) });
  try {
    expect(await server.run((ctx) => ctx.runQuery(api.tasks.list))).toEqual([]);
  } finally {
    await server.close();
  }
});
`;

/**
 * A program for plain Node. Node has a built-in `WebSocket` from version 22; before, the program uses the package `ws`.
 * Prints its results.
 */
export const NODE_SCRIPT = `import { argv, exit } from "node:process";
import { FunctionError, SynclineClient, SynclineHttpClient } from "syncline";
import { WebSocket } from "ws";

const url = argv[2] ?? "";
const client = new SynclineClient(url, { webSocket: WebSocket });
const http = new SynclineHttpClient(url);
const live = new Promise((resolve) => {
  client.subscribe("tasks:list", {}, (tasks) => {
    if (Array.isArray(tasks) && tasks[0]?.text === "over the socket") resolve(tasks.length);
  });
});
await client.auth.signUp({ email: "node@example.com", password: "secret words" });
await client.mutation("tasks:add", { text: "over the socket" });
const count = await live;
const tasks = await http.query("tasks:list", {});
const refused = await client.mutation("tasks:add", { text: 5 }).catch((error) => error);
const { transport } = client.connectionState();
client.close();
console.log(JSON.stringify({
  isSame: Array.isArray(tasks) && tasks.length === count,
  isRefused: refused instanceof FunctionError,
  transport,
}));
// Nothing may keep the program from exiting.
setTimeout(() => exit(3), 60_000).unref();
`;

/** A driver of `syncline conformance` that only subscribes. */
export const NODE_DRIVER = `import { env, stdin } from "node:process";
import { createInterface } from "node:readline";
import { SynclineClient } from "syncline";
import { WebSocket } from "ws";

const client = new SynclineClient(env["SYNCLINE_URL"] ?? "", { webSocket: WebSocket });
for await (const line of createInterface({ input: stdin })) {
  const { id, path, args } = JSON.parse(line);
  client.subscribe(path, args, (value) => console.log(JSON.stringify({ event: "result", id, value })));
}
client.close();
`;

/**
 * A program that checks projects with the installed TypeScript, in one process. It checks their own files and the declarations
 * of Syncline; those of other packages may have errors. Prints the errors, and of each project the checked files.
 */
export const TYPE_CHECK = `import { argv } from "node:process";
import ts from "typescript";

const libraries = new Map();
const host = (options) => {
  const host = ts.createCompilerHost(options);
  const read = host.getSourceFile.bind(host);
  const folder = host.getDefaultLibLocation();
  host.getSourceFile = (name, ...more) => {
    if (!name.startsWith(folder)) return read(name, ...more);
    if (!libraries.has(name)) libraries.set(name, read(name, ...more));
    return libraries.get(name);
  };
  return host;
};
const found = [];
const checked = argv.slice(2).map((path) => {
  const onUnRecoverableConfigFileDiagnostic = (diagnostic) => found.push(diagnostic);
  const config = ts.getParsedCommandLineOfConfigFile(path, {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic });
  const { fileNames: rootNames, options, errors: configFileParsingDiagnostics } = config;
  const program = ts.createProgram({ rootNames, options, configFileParsingDiagnostics, host: host(options) });
  const files = program.getSourceFiles()
    .filter(({ fileName }) => !fileName.includes("/node_modules/") || fileName.includes("/node_modules/syncline/"));
  for (const file of files) found.push(...ts.getPreEmitDiagnostics(program, file));
  return files.map(({ fileName }) => fileName);
});
const errors = ts.sortAndDeduplicateDiagnostics(found).map(({ file, start = 0, code, messageText }) => {
  const { line = 0, character = 0 } = file?.getLineAndCharacterOfPosition(start) ?? {};
  return \`\${file?.fileName}(\${line + 1},\${character + 1}): TS\${code} \${ts.flattenDiagnosticMessageText(messageText, "\\n")}\`;
});
console.log(JSON.stringify({ errors, checked }));
`;
