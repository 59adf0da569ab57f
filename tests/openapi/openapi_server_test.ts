/** The OpenAPI document of a running server: access, and a client generated from it. */
import { Validator } from "@seriousme/openapi-schema-validator";
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import { bearerOf, startTestServer } from "../auth/server/test_server.ts";
import { Commands } from "../support/commands.ts";
import { TempFolder } from "../support/temp_folder.ts";

const commands = Commands.with("serve");
const projectDir = fileURLToPath(new URL("../..", import.meta.url));

const CLIENT = `
import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

const client = createClient<paths>({ baseUrl: Deno.args[0] ?? "" });
const account = { email: "ada@example.com", password: "correct horse" };
const { data: tokens } = await client.POST("/api/auth/signup", { body: account });
if (tokens === undefined || !("accessToken" in tokens)) throw new Error("No tokens");
const headers = { Authorization: \`Bearer \${tokens.accessToken}\` };

const { data: made } = await client.POST("/api/mutation", {
  headers,
  body: { path: "notes:add", args: { text: "Buy milk" } },
});
const id = made?.value as components["schemas"]["notes.add.result"];
const { data: read } = await client.POST("/api/query", { body: { path: "notes:list", args: {} } });
const notes = read?.value as components["schemas"]["notes.list.result"];
const { error } = await client.POST("/api/mutation", { body: { path: "notes:add", args: { text: "" } } });
// @ts-expect-error The text is missing.
const wrong = await client.POST("/api/mutation", { body: { path: "notes:add", args: {} } });
// @ts-expect-error Unknown function.
const unknown = await client.POST("/api/query", { body: { path: "notes:none", args: {} } });
const anonymous = await client.POST("/api/auth/anonymous");
console.log(JSON.stringify({
  id: typeof id,
  notes: notes.map(({ text, author }) => [text, author === tokens.userId]),
  ts: made?.ts,
  error: error?.errorMessage,
  statuses: [wrong.response.status, unknown.response.status, anonymous.response.status],
}));
`;

const functions = {
  "schema.ts": `
    import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
    import { z } from "zod";
    const schema = defineSchema({ notes: defineTable({ text: z.string(), author: id("_users") }) });
    export default schema;
    export const { query, mutation } = createFunctions(schema);`,
  "notes.ts": `
    import { id, UserError } from "syncline/server";
    import { z } from "zod";
    import { mutation, query } from "./schema.ts";
    const note = z.object({ _id: id("notes"), _creationTime: z.number(), text: z.string(), author: id("_users") });
    export const list = query({ args: {}, returns: z.array(note), handler: (ctx) => ctx.db.query("notes").take(10) });
    export const add = mutation({
      args: { text: z.string().min(1) },
      returns: id("notes"),
      handler: (ctx, { text }) => {
        const author = ctx.auth.userId();
        if (author === null) throw new UserError("signed_out");
        return ctx.db.insert("notes", { text, author });
      },
    });`,
};

Deno.test("OD1 a client generated from the document of a server type-checks and works", async () => {
  await using server = await startTestServer({ functions, config: { publicOpenApi: true } });
  const response = await fetch(`${server.url}/api/openapi.json`);
  assert.equal(response.status, 200);
  const document = await response.json();
  assert.deepEqual(await validated(document), []);
  await using folder = new TempFolder();
  await Deno.writeTextFile(folder.at("api.ts"), astToString(await openapiTS(document)));
  await Deno.writeTextFile(folder.at("client.ts"), CLIENT);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--check",
      "--no-lock",
      "--config",
      `${projectDir}deno.json`,
      "--allow-net=127.0.0.1",
      folder.at("client.ts"),
      server.url,
    ],
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  const { ts, ...seen } = JSON.parse(new TextDecoder().decode(stdout));
  assert.ok(ts > 0);
  assert.deepEqual(seen, {
    id: "string",
    notes: [["Buy milk", true]],
    error: "args.text: Too small: expected string to have >=1 characters",
    statuses: [400, 404, 403],
  });
});

Deno.test("OD2 OD3 only administrators read the document, unless everyone may, and the command prints the same one", async () => {
  const config = { functionsDir: `${projectDir}examples/todo/functions` };
  await using server = await startTestServer({ config });
  const url = `${server.url}/api/openapi.json`;
  const refused = await fetch(url);
  assert.deepEqual([refused.status, (await refused.json()).errorData.code], [401, "invalid_token"]);
  const read = await fetch(url, { headers: { Authorization: `Bearer ${await bearerOf(server)}` } });
  assert.equal(read.status, 200);
  const document = await read.json();
  assert.deepEqual(await validated(document), []);
  const { requestBody } = document.paths["/api/mutation"].post;
  const { examples } = requestBody.content["application/json"];
  assert.deepEqual(examples["lists.create"].value.path, "lists:create");
  const printed = await commands.run(["openapi", "--data", server.dataDir]);
  assert.equal(printed.err, "");
  assert.deepEqual(JSON.parse(printed.out), document);
});

async function validated(document: Record<string, unknown>): Promise<unknown[]> {
  const { valid, errors = [] } = await new Validator().validate(structuredClone(document));
  return valid ? [] : [errors].flat();
}
