/** Servers of one cluster in this process. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Lease } from "../../../mod/cluster/postgres/lease.ts";
import { clusterLimits } from "../../../mod/cluster/postgres/limits.ts";
import { parsePostgresUrl } from "../../../mod/cluster/postgres/postgres_address.ts";
import type { ServeConfig } from "../../../mod/config/config.ts";
import { startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { found, until } from "../../support/waiting.ts";

export const functions = {
  "schema.ts": `
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }) });
`,
  "notes.ts": `
import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const addByAction = untypedAction({ args: { text: z.string() }, handler: async (ctx, { text }) => {
  await ctx.runMutation("notes:add", { text });
  return await ctx.runQuery("notes:list", {});
} });
export const addSoon = untypedMutation({ args: { text: z.string() }, handler: async (ctx, { text }) => {
  await ctx.scheduler.runAfter(0, "notes:add", { text });
} });
export const beat = untypedAction({ args: {}, handler: async (ctx) => {
  for (let n = 0; n < 6_000; n++) {
    await ctx.runMutation("notes:add", { text: "beat " + n });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
} });
export const ping = untypedAction({ args: { url: z.string() }, handler: async (_ctx, { url }) => {
  for (let n = 0; n < 12_000; n++) {
    await (await fetch(url)).text();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
} });
export const pingSoon = untypedMutation({ args: { url: z.string() }, handler: (ctx, { url }) =>
  ctx.scheduler.runAfter(0, "notes:ping", { url }) });
export const beatSoon = untypedMutation({ args: {}, handler: (ctx) => ctx.scheduler.runAfter(0, "notes:beat", {}) });
export const jobErrors = untypedQuery({ args: {}, handler: async (ctx) =>
  (await ctx.db.query("_scheduled_functions").collect()).flatMap(({ name, state }) =>
    name === "notes:beat" ? [state.kind === "failed" ? state.error : state.kind] : []) });
export const speak = untypedAction({ args: { words: z.number() }, handler: async (ctx, { words }) => {
  const stream = await ctx.streams.create({ store: false });
  await ctx.runMutation("notes:add", { text: stream.id });
  for (let n = 0; n < words; n++) {
    await stream.write("word ");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await stream.end();
} });
export const me = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.auth.identity())?.userId ?? null });
export const uploadUrl = untypedMutation({ args: {}, handler: (ctx) => ctx.storage.generateUploadUrl() });
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const listSlowly = untypedQuery({ args: {}, handler: async (ctx) => {
  for (let n = 0; n < 10; n++) await ctx.db.query("notes").collect();
  return (await ctx.db.query("notes").collect()).length;
} });
export const list = untypedQuery({ args: {}, handler: async (ctx) => (await ctx.db.query("notes").collect()).map((note) => note.text) });
`,
  "presence.ts": `
import { untypedInternalQuery } from "syncline/server";
export const authorize = untypedInternalQuery({ handler: () => null });
`,
  "http.ts": `
import { httpAction, httpRouter } from "syncline/server";
const http = httpRouter();
http.route({
  path: "/hook",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    const text = await request.text();
    await ctx.runMutation("notes:add", { text });
    return new Response(text, { status: 201, headers: { "X-Url": request.url } });
  }),
});
http.route({
  path: "/refused",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    await ctx.runMutation("notes:add", { text: await request.text() });
    return Response.json([...request.headers.keys()], { headers: { "syncline-passed-refused": "1" } });
  }),
});
export default http;
`,
};

export const SECRET = "a secret of all servers, 2030";

/** A lease that no pause of this process ends. A server that stops still releases it. */
export const LONG_LEASE_MS = 600_000;
/** The lease of real servers. */
export const LEASE_MS = clusterLimits.leaseMs;

function setLease(leaseMs: number): void {
  Object.assign(clusterLimits, { leaseMs });
}

/** Changes the duration of the lease for all servers of this process. Resolves once a leader has renewed it. */
export async function changeLease(leaseMs: number): Promise<void> {
  setLease(leaseMs);
  const { renew } = Lease.prototype;
  let isRenewed = false;
  Lease.prototype.renew = async function () {
    const renewed = await renew.call(this);
    if (renewed !== null && this.epoch !== null) isRenewed = true;
    return renewed;
  };
  try {
    await until(() => isRenewed, { what: "the lease is renewed" });
  } finally {
    Lease.prototype.renew = renew;
  }
}

/** Servers of one cluster. They have a long lease until `changeLease`. */
export class ClusterRig implements AsyncDisposable {
  readonly folder: string;
  readonly url: string;

  private constructor(folder: string, url: string) {
    this.folder = folder;
    this.url = url;
  }

  static async make(url: string): Promise<ClusterRig> {
    setLease(LONG_LEASE_MS);
    return new ClusterRig(await Deno.makeTempDir({ prefix: "syncline-cluster-" }), url);
  }

  /** The cluster's options. */
  config({ url = this.url, secret = SECRET } = {}): NonNullable<ServeConfig["cluster"]> {
    const snapshots = { kind: "folder", path: join(this.folder, "snapshots") } as const;
    return { database: parsePostgresUrl(url), secret, snapshots, address: null, listen: null };
  }

  /** A server on the data folder with this name. */
  async start(name: string, config: Partial<ServeConfig> = {}): Promise<TestServer> {
    const dataDir = join(this.folder, name);
    await Deno.mkdir(dataDir, { recursive: true });
    return await startTestServer({ functions, config: { dataDir, cluster: this.config(), ...config } });
  }

  /** Starts the first server and waits until others can join: on a busy machine they would time out waiting for its snapshot. */
  async first(name: string, config: Partial<ServeConfig> = {}): Promise<TestServer> {
    const server = await this.start(name, config);
    await server.logs("info A snapshot of the cluster was made");
    return server;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    setLease(LEASE_MS);
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Codes of calls that can be repeated under their request id. A server may answer with them after a pause of its process. */
const REPEATABLE: readonly unknown[] = ["unavailable", "outcome_unknown"];

/** Adds a note once. Returns its ts. */
export async function add(server: TestServer, text: string): Promise<number> {
  const headers = { "Syncline-Request": `${crypto.randomUUID()} 0` };
  return await found(async () => {
    const call = { path: "notes:add", args: { text } };
    const { body, status } = await server.post("/api/mutation", call, { headers });
    if (REPEATABLE.includes(body.errorData?.code)) return null;
    if (body.status !== "success") throw new Error(`${status}: ${JSON.stringify(body)}`);
    return body.ts as number;
  }, { what: `"${text}" is added` });
}

/** Returns the texts of the notes. Asks again while the server changes its role, when running queries end as `unavailable`. */
export async function notes(server: TestServer): Promise<readonly string[]> {
  return await found(async () => {
    const { status, body } = await server.post("/api/query", { path: "notes:list", args: {} });
    if (status === 503 && body.errorData?.code === "unavailable") return null;
    assert.ok(Array.isArray(body.value), JSON.stringify(body));
    return body.value;
  }, { what: "a query is answered" });
}
