/** From the app in a developer's folder to a server elsewhere and back, by the installed command alone. */
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { until } from "../../support/waiting.ts";
import type { Ended, NodeMachine } from "./node_machine.ts";

export type Client = import("../../../mod/client/mod.ts").SynclineClient;

const SYNCLINE = "node_modules/.bin/syncline";
/** Documents do not fit the schema. */
const UNFIT = 3;

/** The client of the installed package. */
export async function installedClient(machine: NodeMachine): Promise<{ new (url: string): Client }> {
  const path = pathToFileURL(machine.at("my-app/node_modules/syncline/client.js")).href;
  const { SynclineClient } = await import(path) as { SynclineClient: { new (url: string): Client } };
  return SynclineClient;
}

/** A server without functions in a separate folder, to which the app's folder deploys. */
export class Production implements AsyncDisposable {
  readonly url: string;
  readonly #machine: NodeMachine;
  readonly #running: ReturnType<NodeMachine["start"]>;
  readonly #env: Record<string, string>;

  private constructor(
    machine: NodeMachine,
    { url, running, env }: {
      readonly url: string;
      readonly running: ReturnType<NodeMachine["start"]>;
      readonly env: Record<string, string>;
    },
  ) {
    this.url = url;
    this.#machine = machine;
    this.#running = running;
    this.#env = env;
  }

  static async start(machine: NodeMachine): Promise<Production> {
    await Deno.mkdir(machine.at("server"));
    const running = machine.start(`exec ../my-app/${SYNCLINE} serve --port 0`, { at: "server" });
    const [, url = ""] = await running.line(/app +(http:\/\/127\.0\.0\.1:\d+)\//);
    const { text } = await machine.done(`../my-app/${SYNCLINE} deploy-key create laptop`, { at: "server" });
    const env = { SYNCLINE_URL: url, SYNCLINE_DEPLOY_KEY: text.trim() };
    return new Production(machine, { url, running, env });
  }

  /** Runs a command on the server's machine. */
  async there(command: string): Promise<string> {
    return (await this.#machine.done(`../my-app/${SYNCLINE} ${command}`, { at: "server" })).text;
  }

  /** Runs a command in the app's folder, with the key. */
  async tried(command: string): Promise<Ended> {
    return await this.#machine.run(`${SYNCLINE} ${command}`, { at: "my-app", env: this.#env });
  }

  /** The same for one that has to end with this code. */
  async here(command: string, { code = 0 } = {}): Promise<Ended> {
    const ended = await this.tried(command);
    assert.equal(ended.code, code, ended.text);
    return ended;
  }

  /** Deploys without a type check, which takes longer than all other steps. */
  async deploy(flags: string, { code = 0 } = {}): Promise<Ended> {
    return await this.here(`deploy --skip-type-check ${flags}`, { code });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.interrupt();
  }
}

/** Deploys twice, with the built page and a variable. Returns the duration of the second deploy, which had nothing to do. */
export async function deploys(production: Production): Promise<number> {
  assert.match(await (await fetch(production.url)).text(), /<title>No app yet/);
  const tried = await production.deploy("--static dist --dry-run");
  assert.match(tried.text, /^\+ function tasks:add$[^]*^\+ table tasks$[^]*this was a dry run/m);
  assert.doesNotMatch(tried.text, /^- function/m);
  const { text } = await production.deploy("--static dist --env GREETING=hello");
  assert.match(text, /^Set GREETING in ctx\.env\.$[^]*^Serving [0-9a-f]{32}/m);
  assert.equal(await production.there("env list"), "GREETING=hello\n");
  await production.there("env set GREETING=bye");
  assert.equal(await production.there("env list"), "GREETING=bye\n");
  const again = await production.deploy("--static dist");
  assert.match(again.text, /^Nothing has changed/);
  return again.ms;
}

/** Adds a field to the schema in three steps, while a client stays connected, and rolls the last one back. */
export async function changesSchema(machine: NodeMachine, production: Production): Promise<void> {
  const Client = await installedClient(machine);
  const client = new Client(production.url);
  try {
    const seen: { readonly kind?: string }[][] = [];
    const interruptions: string[] = [];
    client.subscribe("tasks:list", {}, (tasks) => seen.push(tasks as { readonly kind?: string }[]));
    await until(() => seen.length > 0);
    client.onConnectionState(({ isConnected, lastCloseReason }) => {
      if (!isConnected) interruptions.push(lastCloseReason ?? "");
    });
    const schema = machine.at("my-app/functions/schema.ts");
    const before = await Deno.readTextFile(schema);
    const withKind = (type: string) =>
      before.replace("done: z.boolean()", `done: z.boolean(), kind: ${type}`);

    await Deno.writeTextFile(schema, withKind("z.string()"));
    const mistyped = await production.here("deploy --static dist", { code: 1 });
    assert.match(mistyped.text, /^functions\/tasks\.ts\(\d+,\d+\): error TS2345: [^]*'kind' is missing/m);
    // Without the edit the app has no type errors.
    const files = [...mistyped.text.matchAll(/^(\S+)\(\d+,\d+\): error TS/gm)].map(([, name]) => name);
    assert.deepEqual([...new Set(files)], ["functions/tasks.ts"]);
    const unfit = await production.deploy("--static dist", { code: UNFIT });
    assert.match(unfit.text, /^! \d+ documents? of tasks do(?:es)? not fit:$/m);

    await Deno.writeTextFile(schema, withKind("z.string().optional()"));
    await Deno.writeTextFile(machine.at("my-app/functions/migrations.ts"), ADD_KIND);
    await twoAtOnce(production);
    const dry = await production.there("migrate migrations:addKind --table tasks --dry-run");
    assert.match(dry, /^Tried (\d+) documents? of tasks: \1 would change\. Nothing has changed\.$/m);
    assert.match(
      await production.there("migrate migrations:addKind --table tasks"),
      /^Migrated \d+ documents? of tasks\.$/m,
    );
    await until(() => seen.at(-1)?.every(({ kind }) => kind === "chore") === true);

    await Deno.writeTextFile(schema, withKind("z.string()"));
    await production.deploy("--static dist");
    const back = await production.here("rollback");
    assert.match(back.text, /^Serving [0-9a-f]{32} in place of [0-9a-f]{32}\.$/m);
    assert.deepEqual(interruptions, []);
    await Deno.writeTextFile(schema, before);
    await Deno.remove(machine.at("my-app/functions/migrations.ts"));
  } finally {
    client.close();
  }
}

/** Of two concurrent deploys one is served. The other is refused in one line, or has nothing to do. */
async function twoAtOnce(production: Production): Promise<void> {
  const both = await Promise.all(
    [1, 2].map(() => production.tried("deploy --skip-type-check --static dist")),
  );
  const served = both.filter(({ text }) => /^Serving /m.test(text));
  assert.equal(served.length, 1, JSON.stringify(both));
  for (const { text, code } of both) {
    if (code !== 0) assert.match(text.trim(), /^[^\n]*Another deploy is in progress[^\n]*$/);
    else assert.match(text, /^(?:Serving|Nothing has changed)/m);
  }
}

const ADD_KIND = `import { id } from "syncline/server";
import { internalMutation } from "./schema.ts";

export const addKind = internalMutation({
  args: { id: id("tasks") },
  handler: async (ctx, { id }) => {
    await ctx.db.patch(id, { kind: "chore" });
  },
});
`;

/** A rejection is one line, and nothing has changed. */
export async function refusesDeploys(machine: NodeMachine, production: Production): Promise<void> {
  const file = machine.at("my-app/functions/broken.ts");
  await Deno.writeTextFile(file, "export const broken = ;\n");
  assert.match((await production.deploy("--dry-run", { code: 1 })).text, /broken\.ts:1:23/);
  await Deno.remove(file);
  await production.there("deploy-key revoke laptop");
  const revoked = await production.deploy("", { code: 1 });
  assert.match(revoked.text.trim(), /^[^\n]*does not know the deploy key: it was revoked[^\n]*$/);
  const [, page = ""] = / docs=(node_modules\/\S+\/deploying\.md)$/.exec(revoked.text.trim()) ?? [];
  assert.match(await Deno.readTextFile(machine.at("my-app", page)), /^# Deploy/);
  const unreachable = await production.deploy("--url http://127.0.0.1:9", { code: 1 });
  assert.match(unreachable.text.trim(), /^[^\n]*127\.0\.0\.1:9 cannot be reached[^\n]*$/);
}
