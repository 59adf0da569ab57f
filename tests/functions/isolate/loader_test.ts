/** Loading an app: which files are modules, and the errors of an app that cannot be loaded. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { type AppFiles, Workspace } from "./support.ts";

/** Loads an app in a writer; the paths of its functions, or the message that says why it is broken. */
async function load(files: AppFiles, prepare?: (workspace: Workspace) => void): Promise<string[] | string> {
  await using workspace = new Workspace(files);
  prepare?.(workspace);
  const reason = await workspace.version().then(() => null, (error: Error) => error.message);
  if (reason !== null) return reason;
  await using isolate = await workspace.start("writer");
  const answer = isolate.booted;
  if (answer?.type !== "Ready") return answer?.message ?? "";
  return answer.functions.map(([path]) => path).sort();
}

const one = `import { untypedQuery } from "syncline/server"; export const one = untypedQuery(() => 1);`;

Deno.test("modules are the TypeScript and JavaScript files below the folder", async () => {
  const paths = await load({
    "a.ts": one,
    "b.js": one,
    "c.mjs": one,
    "d.tsx": `${one} const element = <T,>(value: T) => value; export const same = element(one);`,
    "nested/deeper/e.ts": one,
    "index.ts": `${one} export default one;`,
    "nested/index.ts": one,
    "_helper.ts": "throw new Error('not a module')",
    "_private/f.ts": "throw new Error('not a module')",
    ".hidden.ts": "throw new Error('not a module')",
    "a.test.ts": "throw new Error('not a module')",
    "a_test.ts": "throw new Error('not a module')",
    "types.d.ts": "declare const x: number;",
    "node_modules/g/g.ts": "throw new Error('not a module')",
    "readme.md": "not a module",
    "with space é.ts": one,
    "http.ts": `import { httpRouter } from "syncline/server"; export default httpRouter();`,
    "crons.ts": `import { cronJobs } from "syncline/server"; export default cronJobs();`,
  }, (workspace) => Deno.symlinkSync("a.ts", `${workspace.functionsDir}/link.ts`));
  assert.deepEqual(paths, [
    "a:one",
    "b:one",
    "c:one",
    "d:one",
    "d:same",
    "default",
    "nested/deeper/e:one",
    "nested/index:one",
    "one",
    "with space é:one",
  ]);
});

Deno.test("exports that are not functions are unchanged", async () => {
  const paths = await load({
    "a.ts": `
      import { createApi, untypedQuery } from "syncline/server";
      export const { api, internal } = createApi<Record<string, never>>();
      export const limit = 3;
      export class Helper {}
      export function helper() {}
      export const nothing = null;
      export const one = untypedQuery(() => 1);
    `,
  });
  assert.deepEqual(paths, ["a:one"]);
});

Deno.test("an empty folder is an app without functions", async () => {
  assert.deepEqual(await load({}), []);
});

const broken: readonly (readonly [name: string, files: AppFiles, message: RegExp])[] = [
  ["a module that throws", { "a.ts": "\n\nthrow new Error('no luck');" }, /^a\.ts:3:7: no luck/],
  ["a syntax error", { "a.ts": "export const = 3;" }, /^a\.ts:1:14: .*Expected .*identifier/s],
  [
    "an import of a missing file",
    { "deep/a.ts": "import './b.ts';" },
    /^deep\/a\.ts:1:8: cannot find the file "\.\/b\.ts"/,
  ],
  [
    "a missing export",
    { "a.ts": "import { x } from './b.ts'; x;", "b.ts": "" },
    /^a\.ts:1:10: Import "x" will always be undefined because the file "functions\/b\.ts" has no exports$/,
  ],
  [
    "an unknown package",
    { "a.ts": "import 'lodash';" },
    /^a\.ts:1:8: cannot find "lodash": packages are installed .*npm install lodash/,
  ],
  [
    "a package by address",
    { "a.ts": "import 'npm:nodemailer@10.6.0';" },
    /^a\.ts:1:8: cannot import an "npm:".*npm install nodemailer/,
  ],
  [
    "a remote module",
    { "a.ts": "import 'https://example.com/x.ts';" },
    /^a\.ts:1:8: cannot import from the network/,
  ],
  [
    "two files of one name",
    { "a.ts": one, "a.js": one },
    /a\.js and a\.ts would give their functions the same paths/,
  ],
  [
    "a schema that is none",
    { "schema.ts": "export default {};" },
    /schema\.ts must export the schema as its default/,
  ],
  [
    "an id of a table that is not there",
    {
      "schema.ts": `
        import { defineSchema, defineTable, id } from "syncline/server";
        export default defineSchema({ notes: defineTable({ of: id("nots") }) });`,
    },
    /id\("nots"\) names a table that schema\.ts does not have; its tables are notes/,
  ],
  [
    "a validator that is none",
    {
      "a.ts":
        `import { untypedQuery } from "syncline/server"; export const q = untypedQuery({ args: { x: "string" }, handler: () => 1 });`,
    },
    /a\.ts:1:\d+: args\.x is not a zod schema/,
  ],
  [
    "a function without handler",
    {
      "a.ts":
        `import { untypedMutation } from "syncline/server"; export const m = untypedMutation({ args: {} });`,
    },
    /mutation\(\) needs a handler/,
  ],
  [
    "a table field of the system",
    {
      "schema.ts": `
        import { defineSchema, defineTable } from "syncline/server"; import { z } from "zod";
        export default defineSchema({ notes: defineTable({ _id: z.string() }) });`,
    },
    /Invalid field "_id"/,
  ],
];

for (const [name, files, message] of broken) {
  Deno.test(`an app is refused with the position and the reason: ${name}`, async () => {
    const received = await load(files);
    assert.equal(typeof received, "string");
    assert.match(received as string, message);
    assert.ok(!(received as string).includes("/tmp/"), received as string);
  });
}

const brokenDeclarations: Record<string, readonly [files: AppFiles, message: RegExp]> = {
  "an http.ts without a router": [
    { "http.ts": "export default 3;" },
    /^http\.ts: the default export must be/,
  ],
  "a crons.ts without crons": [
    { "crons.ts": "export const x = 3;" },
    /^crons\.ts: the default export must be/,
  ],
  "a route of the service": [
    {
      "http.ts": `import { httpAction, httpRouter } from "syncline/server";
        const http = httpRouter();
        http.route({ path: "/api/x", method: "GET", handler: httpAction(() => new Response()) });
        export default http;`,
    },
    /http\.ts:3:14: "\/api\/x" belongs to the service/,
  ],
  "a cron of a function that is not there": [
    {
      "crons.ts": `import { cronJobs } from "syncline/server";
        const crons = cronJobs();
        crons.interval("x", { minutes: 1 }, "a:gone");
        export default crons;`,
    },
    /^crons\.ts: cron "x": there is no function "a:gone"/,
  ],
  "a cron expression that is none": [
    {
      "a.ts":
        `import { untypedMutation } from "syncline/server"; export const b = untypedMutation(() => {});`,
      "crons.ts": `import { cronJobs } from "syncline/server";
        const crons = cronJobs();
        crons.cron("x", "61 * * * *", "a:b");
        export default crons;`,
    },
    /^crons\.ts: cron "x": "61 \* \* \* \*": .*minute/,
  ],
};

for (const [name, [files, message]] of Object.entries(brokenDeclarations)) {
  Deno.test(`${name} is reported with its file when the app is loaded`, async () => {
    assert.match(String(await load(files)), message);
  });
}

Deno.test("a writer that has to append to a log changes no database without a history", async () => {
  await using workspace = new Workspace({
    "a.ts": one,
    "schema.ts": `import { defineSchema, defineTable } from "syncline/server"; import { z } from "zod";
      export default defineSchema({ notes: defineTable({ n: z.number() }) });`,
  });
  await using writer = await workspace.start("writer", { journal: "external" });
  assert.ok(writer.booted?.type === "Broken", JSON.stringify(writer.booted));
  assert.match(writer.booted.message, /no history that is stored elsewhere/);
  using database = new DatabaseSync(`${workspace.dataDir}/data.db`, { readOnly: true });
  assert.deepEqual(database.prepare("SELECT name FROM syncline_tables").all(), []);
});
