/** The MCP server with the client of the MCP SDK: an agent's tasks over HTTP, and the command over standard input. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import assert from "node:assert/strict";
import { bearerOf, startTestServer, type TestServer } from "../auth/server/test_server.ts";
import { programModule, projectDir } from "../support/processes/program_module.ts";
import { HANG_MS, until } from "../support/waiting.ts";

/** Options of requests, whose default timeout is short for a busy machine. */
const PATIENT = { timeout: HANG_MS };

const functions = {
  "schema.ts": `
    import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
    import { z } from "zod";
    const schema = defineSchema({
      notes: defineTable({ text: z.string(), stars: z.number() }).index("by_stars", ["stars"]),
    });
    export default schema;
    export const { query, mutation, action, internalQuery } = createFunctions(schema);`,
  "notes.ts": `
    import { UserError } from "syncline/server";
    import { z } from "zod";
    import { action, internalQuery, mutation, query } from "./schema.ts";
    export const add = mutation({
      args: { text: z.string().min(1), stars: z.number().default(0) },
      handler: (ctx, note) => {
        if (note.text === "refused") throw new UserError("refused", "This note is refused");
        return ctx.db.insert("notes", note);
      },
    });
    export const me = query({ args: {}, handler: (ctx) => ctx.auth.userId() });
    export const total = internalQuery({ args: {}, returns: z.number(), handler: (ctx) => ctx.db.query("notes").count() });
    export const large = query({ args: {}, handler: () => "x".repeat(200_000) });
    export const shout = action({ args: { text: z.string() }, handler: (_ctx, { text }) => text.toUpperCase() });`,
};

/** A connection of an agent. */
class Agent implements AsyncDisposable {
  readonly client = new Client({ name: "test", version: "1" });

  static async overHttp(server: TestServer, bearer: string, { write = false } = {}): Promise<Agent> {
    const agent = new Agent();
    const url = new URL(`${server.url}/api/mcp${write ? "?write=true" : ""}`);
    const requestInit = { headers: { Authorization: `Bearer ${bearer}` } };
    await agent.client.connect(new StreamableHTTPClientTransport(url, { requestInit }), PATIENT);
    return agent;
  }

  /** The text of an answer. Fails for an error. */
  async text(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const { content, isError } = await this.#call(name, args);
    assert.notEqual(isError, true, content[0]?.text);
    return content[0]?.text ?? "";
  }

  // deno-lint-ignore no-explicit-any -- results of many shapes
  async json(name: string, args: Record<string, unknown> = {}): Promise<any> {
    return JSON.parse(await this.text(name, args));
  }

  /** The message of an error. */
  async refused(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const { content, isError } = await this.#call(name, args);
    assert.equal(isError, true, content[0]?.text);
    return content[0]?.text ?? "";
  }

  async names(): Promise<string[]> {
    const { tools } = await this.client.listTools({}, PATIENT) as {
      readonly tools: readonly { readonly name: string }[];
    };
    return tools.map(({ name }) => name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }

  async #call(name: string, args: Record<string, unknown>) {
    const answer = await this.client.callTool({ name, arguments: args }, undefined, PATIENT);
    return answer as { content: { text: string }[]; isError?: boolean };
  }
}

Deno.test("MC1 MC2 MC3 MC4 an agent does the tasks of a backend developer", async (t) => {
  const executionLog = { keepMs: 86_400_000, bytesMax: 1e8 };
  await using server = await startTestServer({ functions, config: { executionLog } });
  const bearer = await bearerOf(server);
  const { body: ada } = await server.post("/api/auth/signup", {
    email: "ada@example.com",
    password: "correct horse",
  });
  await using reader = await Agent.overHttp(server, bearer);
  await using writer = await Agent.overHttp(server, bearer, { write: true });

  await t.step("1. it reads the documentation by topic", async () => {
    assert.match(await reader.text("read_documentation"), /\/_\/docs\/queries\.md/);
    assert.match(await reader.text("read_documentation", { page: "queries" }), /^# Queries/);
    const found = await reader.json("read_documentation", { search: "withIndex" });
    assert.ok(found.length > 0 && found.every(({ page }: { page: string }) => page !== ""));
    assert.match(await reader.refused("read_documentation", { page: "none" }), /There is no page "none"/);
    assert.match(await reader.refused("read_documentation", { page: "../README" }), /There is no page/);
  });

  await t.step("2. it reads the tables, schemas and indexes", async () => {
    const tables = await reader.json("list_tables");
    const notes = tables.find(({ name }: { name: string }) => name === "notes");
    assert.equal(notes.documents, 0);
    assert.deepEqual(notes.indexes.by_stars, ["stars"]);
    const { schema } = await reader.json("describe_table", { table: "notes" });
    assert.deepEqual(Object.keys(schema.properties), ["text", "stars"]);
    assert.match(await reader.refused("describe_table", { table: "none" }), /"none" not found/);
  });

  await t.step("3. it reads the functions and their arguments", async () => {
    const all = await reader.json("list_functions", { prefix: "notes:" });
    assert.deepEqual(
      all.map(({ path, kind, visibility }: Record<string, string>) => `${path} ${kind} ${visibility}`)
        .toSorted(),
      [
        "notes:add mutation public",
        "notes:large query public",
        "notes:me query public",
        "notes:shout action public",
        "notes:total query internal",
      ],
    );
    const [add] = await reader.json("list_functions", { kind: "mutation" });
    assert.deepEqual(add.args.required, ["text"]);
  });

  await t.step("4. it cannot write without write access, by no tool", async () => {
    const names = await reader.names();
    assert.ok(
      names.includes("run_query") && !names.includes("run_mutation") && !names.includes("run_action"),
    );
    const args = { path: "notes:add", args: { text: "one" } };
    assert.match(await reader.refused("run_mutation", args), /read-only/);
    assert.match(await reader.refused("run_query", args), /"notes:add" is of kind mutation, expected query/);
    assert.deepEqual((await reader.json("run_query", { path: "notes:total" })).result, {
      ok: true,
      value: 0,
    });
  });

  let id = "";
  await t.step("5. it adds documents with a mutation, if it may", async () => {
    assert.ok((await writer.names()).includes("run_mutation"));
    for (const [i, text] of ["one", "two", "three"].entries()) {
      const { result } = await writer.json("run_mutation", { path: "notes:add", args: { text, stars: i } });
      id = result.value;
    }
    const { result } = await writer.json("run_action", { path: "notes:shout", args: { text: "hi" } });
    assert.equal(result.value, "HI");
  });

  await t.step("6. it reads documents by index, by condition and in pages", async () => {
    const texts = (page: { documents: { text: string }[] }) => page.documents.map(({ text }) => text);
    const byStars = { table: "notes", index: "by_stars", range: { gte: 1 } };
    assert.deepEqual(texts(await reader.json("read_documents", byStars)), ["two", "three"]);
    const conditions = [{ field: "text", op: "contains", value: "E" }];
    assert.deepEqual(texts(await reader.json("read_documents", { table: "notes", conditions })), [
      "three",
      "one",
    ]);
    const first = await reader.json("read_documents", { table: "notes", limit: 2 });
    assert.deepEqual(texts(first), ["three", "two"]);
    const rest = await reader.json("read_documents", { table: "notes", limit: 2, cursor: first.cursor });
    assert.deepEqual([texts(rest), rest.cursor], [["one"], null]);
    assert.deepEqual((await reader.json("get_document", { id })).document.text, "three");
    assert.match(await reader.refused("read_documents", { table: "_sessions" }), /_sessions/);
    assert.match(await reader.refused("read_documents", { table: "notes", limit: 1000 }), /limit/);
  });

  await t.step("7. it runs a query on behalf of a user", async () => {
    const run = await reader.json("run_query", { path: "notes:me", asUser: ada.userId });
    assert.equal(run.result.value, ada.userId);
  });

  await t.step("8. it finds a failed run in the log", async () => {
    await server.post("/api/mutation", { path: "notes:add", args: { text: "refused" } });
    let runs: { error: { message: string } }[] = [];
    // The log is written in the background.
    await until(async () => {
      ({ runs } = await reader.json("search_logs", { outcome: "user_error", text: "This note" }));
      return runs.length > 0;
    });
    assert.equal(runs[0]?.error.message, "This note is refused");
    assert.match(await reader.refused("search_logs", { request: "?" }), /request/);
  });

  await t.step("9. it inspects statistics, deploys and options", async () => {
    assert.ok((await reader.json("get_stats")).startedAt > 0);
    assert.equal((await reader.json("list_deploys")).pinned, true);
    assert.match(await reader.refused("compare_deploy", { hash: "none" }), /folder|version/);
    const options = await reader.text("list_options");
    assert.match(options, /--disable-signups/);
    const authConfig = JSON.stringify({
      providers: { github: { clientId: "app", clientSecret: { secret: "very secret" } } },
    });
    const { status, body } = await server.post("/api/action", {
      path: "_admin/settings:set",
      args: { changes: { authRedirectUrl: server.url, authConfig } },
    }, { bearer });
    assert.equal(status, 200, body.errorMessage);
    const shown = await reader.json("list_options");
    const setting = shown.find(({ name }: { name: string }) => name === "authConfig");
    assert.deepEqual([setting.set, setting.text], [true, null], "not even encrypted secrets");
  });

  await t.step("a batch is answered although it cancels its own request", async () => {
    const response = await fetch(`${server.url}/api/mcp`, {
      method: "POST",
      headers: {
        "Accept": "application/json, text/event-stream",
        "Authorization": `Bearer ${bearer}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify([
        { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_deploys" } },
        { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
        { jsonrpc: "2.0", id: 2, method: "ping" },
      ]),
      signal: AbortSignal.timeout(HANG_MS),
    });
    assert.deepEqual((await response.json()).map(({ id }: { id: number }) => id).toSorted(), [1, 2]);
  });

  await t.step("10. its answers are bounded, and every call is in the audit log", async () => {
    const large = await reader.text("run_query", { path: "notes:large" });
    assert.ok(large.length < 61_000);
    assert.match(large, /cut: \d+ more characters/);
    const { body } = await server.post("/api/query", {
      path: "_admin/audit:list",
      args: { paginationOpts: { numItems: 100, cursor: null }, action: "mcp:" },
    }, { bearer });
    const rows = body.value.page as { action: string; args: unknown; outcome: string; email: string }[];
    const shown = (wanted: string) =>
      rows.filter(({ action }) => action === `mcp:${wanted}`).map(({ args, outcome }) => ({ args, outcome }));
    assert.equal(shown("run_mutation").length, 4);
    assert.deepEqual(shown("run_mutation").at(-1), {
      args: { path: "notes:add", args: "(text)" },
      outcome: "read_only",
    });
    assert.ok(rows.every(({ email }) => email === "root@example.com"));
    assert.ok(shown("read_documentation").length === 5 && shown("get_stats").length === 1);
    assert.doesNotMatch(JSON.stringify(rows), /This note|three/);
  });
});

Deno.test("MC1 MC6 administrators and programs with an API key connect", async (t) => {
  await using server = await startTestServer({ functions });
  const admin = { bearer: await bearerOf(server) };
  const { body: ada } = await server.post("/api/auth/signup", {
    email: "ada@example.com",
    password: "correct horse",
  });

  await t.step(
    "MC1 only administrators connect, by POST, and only the command line calls its action",
    async () => {
      for (const bearer of [undefined, "none", ada.accessToken]) {
        const { status, body } = await server.post("/api/mcp", {}, bearer === undefined ? {} : { bearer });
        assert.deepEqual([status, body.errorData.code], [401, "invalid_token"]);
      }
      const headers = { Authorization: `Bearer ${admin.bearer}` };
      const got = await fetch(`${server.url}/api/mcp`, { headers });
      await got.body?.cancel();
      assert.deepEqual([got.status, got.headers.get("allow")], [405, "POST, OPTIONS"]);
      const called = await server.post("/api/action", {
        path: "_admin/mcp:handle",
        args: { message: {}, write: true },
      }, {
        headers,
      });
      assert.equal(called.status, 404, "only the command line may");
    },
  );

  await t.step("MC6 a program with an API key has tools for the functions of the key only", async () => {
    const created = async (args: object): Promise<{ key: string; keyId: string }> => {
      const call = { path: "_admin/apiKeys:create", args };
      return (await server.post("/api/action", call, admin)).body.value;
    };
    const functionsOfKey = ["notes:add", "notes:me", "notes:total", "notes:shout"];
    const { key, keyId } = await created({
      name: "agent",
      functions: functionsOfKey,
      kinds: ["query", "mutation"],
    });
    await using reader = await Agent.overHttp(server, key);
    await using writer = await Agent.overHttp(server, key, { write: true });
    const tools = ["list_functions", "run_query", "read_documentation"];
    assert.deepEqual(await reader.names(), tools);
    assert.match(await reader.text("read_documentation", { page: "queries" }), /^# Queries/);
    assert.deepEqual((await writer.names()).sort(), [...tools, "run_mutation", "run_action"].sort());

    const listing = await fetch(`${server.url}/api/mcp`, {
      method: "POST",
      headers: {
        "Accept": "application/json, text/event-stream",
        "Authorization": `Bearer ${key}`,
        "Content-Type": "application/json",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    await listing.body?.cancel();
    assert.deepEqual([listing.status, listing.headers.get("cache-control")], [200, "no-store"]);

    // The scope of the key excludes internal functions and actions.
    const listed = await reader.json("list_functions");
    assert.deepEqual(listed.map(({ path }: { path: string }) => path).sort(), ["notes:add", "notes:me"]);
    assert.deepEqual(await reader.json("run_query", { path: "notes:me" }), { value: null });
    assert.match(
      await reader.refused("run_query", { path: "notes:total" }),
      /There is no function "notes:total"/,
    );
    assert.match(await reader.refused("run_query", { path: "notes:large" }), /may not call "notes:large"/);
    assert.match(await reader.refused("run_query", { path: "_admin/users:list" }), /may not call/);
    assert.match(await writer.refused("run_action", { path: "notes:shout" }), /may not call "notes:shout"/);
    // `run_query` runs no mutations.
    const add = { path: "notes:add", args: { text: "of the key" } };
    assert.match(await reader.refused("run_query", add), /no function|mutation/);
    assert.match(await reader.refused("run_mutation", add), /read-only/);
    assert.equal(typeof (await writer.json("run_mutation", add)).value, "string");
    const refused = { path: "notes:add", args: { text: "refused" } };
    assert.match(await writer.refused("run_mutation", refused), /This note is refused/);
    const asUser = { path: "notes:me", args: {}, asUser: ada.userId };
    assert.match(await reader.refused("run_query", asUser), /asUser/);
    for (const tool of ["read_documents", "search_logs", "list_options"]) {
      assert.match(await reader.refused(tool), /There is no tool/);
    }
    const audit = await server.post("/api/query", {
      path: "_admin/audit:list",
      args: { paginationOpts: { numItems: 100, cursor: null }, action: "mcp:run_mutation" },
    }, admin);
    const rows = audit.body.value.page as { args: { by?: string }; outcome: string }[];
    assert.deepEqual(rows.map(({ args, outcome }) => [args.by, outcome]), [
      ["API key agent", "refused"],
      ["API key agent", "ok"],
      ["API key agent", "read_only"],
    ]);

    const ofUser = await created({ name: "of a user", functions: ["*"], userId: ada.userId });
    await server.post("/api/mutation", { path: "_admin/apiKeys:revoke", args: { keyId } }, admin);
    for (const bearer of [ofUser.key, key, `${key.slice(0, -1)}_`]) {
      const { status, body } = await server.post("/api/mcp", {}, { bearer });
      assert.deepEqual([status, body.errorData.code], [401, "invalid_token"]);
    }
  });
});

Deno.test({
  name:
    "MC5 the command serves MCP over standard input and output, for the server of a data folder or at a URL",
  // The transport of the SDK does not clear its timers.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using server = await startTestServer({ functions });
    const bearer = await bearerOf(server);
    const start = async (args: readonly string[], env: Record<string, string> = {}) => {
      const agent = new Agent();
      await agent.client.connect(
        new StdioClientTransport({
          command: Deno.execPath(),
          args: [
            "run",
            "--quiet",
            "--no-prompt",
            "--no-check",
            "-P=serve",
            programModule("cli.ts"),
            "mcp",
            ...args,
          ],
          cwd: projectDir,
          env: { ...env, PATH: Deno.env.get("PATH") ?? "", HOME: Deno.env.get("HOME") ?? "" },
          stderr: "inherit",
        }),
        PATIENT,
      );
      return agent;
    };
    {
      await using local = await start(["--data", server.dataDir, "--allow-writes"]);
      await local.text("run_mutation", { path: "notes:add", args: { text: "one" } });
      const total = await local.json("run_query", { path: "notes:total" });
      assert.equal(total.result.value, 1);
    }
    await using remote = await start(["--url", server.url], { SYNCLINE_ADMIN_TOKEN: bearer });
    assert.ok(!(await remote.names()).includes("run_mutation"));
    assert.equal((await remote.json("read_documents", { table: "notes" })).documents.length, 1);
  },
});
