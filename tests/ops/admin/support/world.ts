/** A real server with a message app and callers of every kind. */
import assert from "node:assert/strict";
import { startTestServer, type TestServer } from "../../../auth/server/test_server.ts";
import type { StartOptions } from "../../../auth/server/test_server.ts";

const functions = {
  "schema.ts": `
    import { defineSchema, defineTable, id } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      channels: defineTable({ name: z.string(), owner: id("_users").optional(), cover: id("_storage").optional() })
        .index("by_name", ["name"]),
      messages: defineTable({
        channel: z.string(),
        author: id("_users").optional(),
        body: z.string().max(200),
        likes: z.number().optional(),
        meta: z.object({ tags: z.array(z.string()) }).optional(),
      }).index("by_channel", ["channel", "likes"]).index("by_author", ["author"])
        .searchIndex("search_body", { searchField: "body", filterFields: ["channel"] })
        .deleteWithUser("by_author"),
    });`,
  "messages.ts": `
    import { untypedAction, untypedInternalMutation, untypedInternalQuery, untypedMutation, untypedQuery, UserError } from "syncline/server";
    import { z } from "zod";
    export const list = untypedQuery({ args: { channel: z.string() }, handler: async (ctx, { channel }) => {
      ctx.log.info("listing", { channel });
      return await ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", channel)).collect();
    } });
    export const secretCount = untypedInternalQuery({ handler: async (ctx) => (await ctx.db.query("messages").collect()).length });
    export const send = untypedMutation({ args: { channel: z.string(), body: z.string() }, handler: async (ctx, args) => {
      const author = ctx.auth.userId();
      if (args.body === "") throw new UserError("empty_message", "Say something", { field: "body" });
      return await ctx.db.insert("messages", { ...args, ...(author && { author }) });
    } });
    export const tick = untypedInternalMutation({ handler: async (ctx) => {
      await ctx.db.insert("channels", { name: "tick" });
    } });
    export const later = untypedMutation({ handler: async (ctx) => await ctx.scheduler.runAfter(3_600_000, "messages:tick", {}) });
    export const who = untypedAction({ handler: async (ctx) => ctx.auth.userId() });
    export const sneak = untypedAction({ args: { path: z.string() }, handler: async (ctx, { path }) => {
      try {
        return { reached: await ctx.runQuery(path, {}) };
      } catch (error) {
        return { refused: error.message };
      }
    } });
    export const uploadUrl = untypedMutation({ handler: async (ctx) => await ctx.storage.generateUploadUrl() });`,
  "crons.ts": `
    import { cronJobs } from "syncline/server";
    const crons = cronJobs();
    crons.interval("tick", { hours: 5 }, "messages:tick", {});
    export default crons;`,
};

export const password = "correct horse battery";

/** Response of a call over HTTP. */
export interface CallAnswer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- results of many shapes
  readonly value: any;
  readonly message: string | null;
  readonly code: string | null;
  // deno-lint-ignore no-explicit-any -- data of many shapes
  readonly data: any;
}

export type Kind = "query" | "mutation" | "action";

export interface World extends AsyncDisposable {
  readonly server: TestServer;
  /** Access token of an administrator. */
  readonly admin: string;
  readonly adminId: string;
  /** Access token of a user. */
  readonly user: string;
  readonly userId: string;
  /** Calls a function, by default as the administrator. */
  call(kind: Kind, path: string, args?: unknown, bearer?: string | null): Promise<CallAnswer>;
  /** The same, requiring success. */
  // deno-lint-ignore no-explicit-any -- results of many shapes
  ok(kind: Kind, path: string, args?: unknown, bearer?: string | null): Promise<any>;
  signUp(email: string): Promise<{ accessToken: string; refreshToken: string; userId: string }>;
  /** Creates another administrator and signs in. */
  addAdmin(email: string): Promise<{ accessToken: string; refreshToken: string; adminId: string }>;
  signInAdmin(
    email: string,
    password?: string,
  ): Promise<{ accessToken: string; refreshToken: string; adminId: string }>;
  /** Access token of an impersonation session. */
  impersonate(userId: string, bearer?: string): Promise<string>;
}

export async function startWorld(options: StartOptions = {}): Promise<World> {
  const server = await startTestServer({ functions, ...options });
  const post = async (path: string, body: unknown, bearer?: string) => {
    const answer = await server.post(path, body, bearer === undefined ? {} : { bearer });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  const token = new URL(server.setupLink ?? "").hash.split("=")[1];
  const setUp = await post("/api/auth/admin/setup", { token, email: "root@example.com", password });
  const signUp: World["signUp"] = (email) => post("/api/auth/signup", { email, password });
  const first = await signUp("ada@example.com");
  const call: World["call"] = async (kind, path, args = {}, bearer = setUp.accessToken) => {
    const { status, body } = await server.post(
      `/api/${kind}`,
      { path, args },
      bearer === null ? {} : { bearer },
    );
    return {
      status,
      value: body.value,
      message: body.errorMessage ?? null,
      code: body.errorData?.code ?? null,
      data: body.errorData?.data ?? null,
    };
  };
  const ok: World["ok"] = async (kind, path, args, bearer) => {
    const answer = await call(kind, path, args, bearer);
    assert.equal(answer.status, 200, `${path}: ${answer.message}`);
    return answer.value;
  };
  const signInAdmin: World["signInAdmin"] = (email, chosen = password) =>
    post("/api/auth/admin/signin", { email, password: chosen });
  return {
    server,
    admin: setUp.accessToken,
    adminId: setUp.adminId,
    user: first.accessToken,
    userId: first.userId,
    call,
    ok,
    signUp,
    signInAdmin,
    async addAdmin(email) {
      await ok("action", "_admin/administrators:create", { email, password });
      return await signInAdmin(email);
    },
    impersonate: async (userId, bearer = setUp.accessToken) =>
      (await post("/api/admin/impersonate", { userId }, bearer)).accessToken,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
