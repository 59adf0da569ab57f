/** A server for deploys, and bundles of inline apps. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { readBundle } from "../../../mod/ops/deploy/mod.ts";
import type { BundleManifest } from "../../../mod/ops/deploy/bundle/bundle_manifest.ts";
import { type StartOptions, startTestServer, type TestServer } from "../../auth/server/test_server.ts";

export const password = "correct horse battery";

/** The app that the server starts with. */
export const firstApp = {
  "functions/schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      notes: defineTable({ body: z.string() }).index("by_body", ["body"]),
      drafts: defineTable({ body: z.string() }),
    });`,
  "functions/notes.ts": `
    import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    import { z } from "zod";
    export const version = untypedQuery({ handler: () => "one" });
    export const list = untypedQuery({ handler: async (ctx) => await ctx.db.query("notes").collect() });
    export const add = untypedMutation({ args: { body: z.string() }, handler: async (ctx, args) => await ctx.db.insert("notes", args) });
    export const draft = untypedMutation({ args: { body: z.string() }, handler: async (ctx, args) => await ctx.db.insert("drafts", args) });
    export const env = untypedAction({ handler: async (ctx) => ctx.env });
    export const gone = untypedQuery({ handler: () => null });
    export const slow = untypedAction({ handler: async (ctx) => {
      await ctx.runMutation("notes:add", { body: "begun" });
      while ((await ctx.runQuery("notes:list", {})).length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
      return "ended by one";
    } });`,
};

/** The same with changed code: edits by file. */
export function appWith(edits: Readonly<Record<string, (text: string) => string>>): Record<string, string> {
  const files: Record<string, string> = { ...firstApp };
  for (const [name, edit] of Object.entries(edits)) files[name] = edit(files[name] ?? "");
  return files;
}

export const secondApp = appWith({
  "functions/notes.ts": (text) =>
    text.replace('"one"', '"two"').replace(/export const gone.*\n/, "") +
    `export const fresh = untypedQuery({ handler: () => "fresh" });
    export const tidy = untypedMutation({ handler: () => null });`,
  "functions/schema.ts": (text) => text.replace('index("by_body", ["body"])', 'index("by_text", ["body"])'),
  "functions/crons.ts": () => `
    import { cronJobs } from "syncline/server";
    const crons = cronJobs();
    crons.interval("tidy", { hours: 5 }, "notes:tidy", {});
    export default crons;`,
});

export interface TestBundle {
  readonly manifest: BundleManifest;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Packs an app; files below `public/` are its frontend. */
export async function bundleOf(
  files: Readonly<Record<string, string>>,
  links: Readonly<Record<string, string>> = {},
  functionsFolder = "functions",
): Promise<TestBundle> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  try {
    for (const [name, text] of Object.entries(files)) {
      const path = join(folder, name);
      await Deno.mkdir(join(path, ".."), { recursive: true });
      await Deno.writeTextFile(path, text);
    }
    for (const [name, target] of Object.entries(links)) await Deno.symlink(target, join(folder, name));
    const hasFrontend = Object.keys(files).some((name) => name.startsWith("public/"));
    const bundle = await readBundle({
      functionsDir: join(folder, functionsFolder),
      staticDir: hasFrontend ? join(folder, "public") : null,
      dataDir: join(folder, "data"),
    });
    const bytes = new Uint8Array(
      await new Response(bundle.packed() as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer(),
    );
    return { manifest: bundle.manifest, bytes };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

export interface Answer {
  readonly status: number;
  readonly code: string | null;
  // deno-lint-ignore no-explicit-any -- answers of many shapes
  readonly body: any;
}

export interface DeployWorld extends AsyncDisposable {
  readonly server: TestServer;
  readonly admin: string;
  /** A request below `/api/admin`, by default as the administrator. */
  admin_(method: string, path: string, body?: BodyInit | object, bearer?: string | null): Promise<Answer>;
  deploy(
    files: Readonly<Record<string, string>>,
    options?: { readonly query?: string; readonly bearer?: string | null },
  ): Promise<Answer>;
  /** Calls a function, requiring success. */
  // deno-lint-ignore no-explicit-any -- results of many shapes
  call(kind: "query" | "mutation" | "action", path: string, args?: object, bearer?: string): Promise<any>;
  /** Names below the folders that deploys write to. */
  leftovers(): Promise<string[]>;
}

export async function startDeployWorld(options: StartOptions = {}): Promise<DeployWorld> {
  const functions = Object.fromEntries(
    Object.entries(firstApp).map(([name, text]) => [name.replace("functions/", ""), text]),
  );
  const server = await startTestServer({
    functions,
    ...options,
    config: { pinned: false, ...options.config },
  });
  const token = new URL(server.setupLink ?? "").hash.split("=")[1];
  const { body: { accessToken: admin } } = await server.post("/api/auth/admin/setup", {
    token,
    email: "root@example.com",
    password,
  });
  const admin_: DeployWorld["admin_"] = async (method, path, body, bearer = admin) => {
    const raw = body instanceof Uint8Array || body instanceof ReadableStream;
    const response = await fetch(`${server.url}/api/admin${path}`, {
      method,
      ...(body !== undefined && { body: raw ? body as BodyInit : JSON.stringify(body) }),
      headers: {
        ...(body !== undefined && !raw && { "Content-Type": "application/json" }),
        ...(bearer !== null && { Authorization: `Bearer ${bearer}` }),
      },
    });
    const answer = await response.json();
    return { status: response.status, code: answer.errorData?.code ?? null, body: answer };
  };
  return {
    server,
    admin,
    admin_,
    async deploy(files, { query = "", bearer } = {}) {
      return await admin_("PUT", `/functions${query}`, (await bundleOf(files)).bytes, bearer);
    },
    async call(kind, path, args = {}, bearer) {
      const { status, body } = await server.post(
        `/api/${kind}`,
        { path, args },
        bearer === undefined ? {} : { bearer },
      );
      assert.equal(status, 200, `${path}: ${body.errorMessage}`);
      return body.value;
    },
    async leftovers() {
      const names = [];
      for (const folder of ["incoming", "versions"]) {
        for await (const { name } of Deno.readDir(join(server.dataDir, folder))) {
          names.push(`${folder}/${name}`);
        }
      }
      return names.sort();
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
