/** Deploys to several servers: each computes its results at a ts with the code of that ts, also when servers are killed. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { FollowingWriter, RowsRefusedError } from "../../mod/functions/host/writer/following_writer.ts";
import { SharedVersions } from "../../mod/cluster/postgres/shared_versions.ts";
import { StartError } from "../../mod/config/start_error.ts";
import { bundleOf } from "../ops/deploy/support.ts";
import { found, HANG_MS, pause, until } from "../support/waiting.ts";
import type { TestServer } from "../auth/server/test_server.ts";
import { CodeView } from "./support/code_view.ts";
import { needs, postgres } from "../support/services.ts";
import { TestPostgres } from "./support/postgres.ts";
import { type ClusterProcess, ProcessRig } from "./support/server_processes.ts";
import { ClusterRig } from "./support/servers.ts";

const ACCOUNT = { email: "root@example.com", password: "correct horse battery" };

/** An app that returns its version, and whose tables differ between versions. */
function app(version: number): Record<string, string> {
  return {
    "functions/schema.ts": `
      import { defineSchema, defineTable } from "syncline/server";
      import { z } from "zod";
      export default defineSchema({ marks: defineTable({ by: z.number() }).index("by_${version}", ["by"]) });`,
    "functions/app.ts": `
      import { untypedMutation, untypedQuery } from "syncline/server";
      export const look = untypedQuery({ handler: async (ctx) => ({
        code: ${version},
        by: (await ctx.db.query("marks").order("desc").first())?.by ?? 0,
        found: (await ctx.db.query("marks").withIndex("by_${version}").collect()).length,
      }) });
      export const mark = untypedMutation({ handler: async (ctx) => {
        await ctx.db.insert("marks", { by: ${version} });
        return ${version};
      } });`,
    "public/index.html": `<title>version ${version}</title>`,
  };
}

interface Answer {
  readonly status: number;
  // deno-lint-ignore no-explicit-any -- answers of many shapes
  readonly body: any;
}

async function ask(
  url: string,
  { method = "POST", path, body, bearer, name }: {
    readonly method?: string;
    readonly path: string;
    readonly body?: Uint8Array<ArrayBuffer> | object;
    readonly bearer?: string;
    readonly name?: string;
  },
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
      ...(name !== undefined && { "Syncline-Request": name }),
      ...(body !== undefined && !(body instanceof Uint8Array) && { "Content-Type": "application/json" }),
    },
    ...(body !== undefined && { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
    signal: AbortSignal.timeout(HANG_MS),
  });
  return { status: response.status, body: await response.json() };
}

async function bearerOf(url: string, token: string | null): Promise<string> {
  const { body } = await ask(url, { path: "/api/auth/admin/setup", body: { token, ...ACCOUNT } });
  assert.ok(body.accessToken, JSON.stringify(body));
  return body.accessToken;
}

/** On a busy machine the leader may change in the meantime. A deploy with one of these answers can be repeated. */
const REPEATABLE: readonly unknown[] = ["outcome_unknown", "unavailable", "deploy_in_progress"];

async function deploy(url: string, bearer: string, files: Record<string, string>): Promise<Answer> {
  const body = (await bundleOf(files)).bytes;
  return await found(async () => {
    const answer = await ask(url, { method: "PUT", path: "/api/admin/functions", body, bearer });
    return REPEATABLE.includes(answer.body.errorData?.code) ? null : answer;
  });
}

/** Rolls back to the previous version, which must have this hash. A second attempt names it: the first may have succeeded. */
async function rollBack(url: string, bearer: string, hash: string): Promise<Answer> {
  let body = {};
  return await found(async () => {
    const answer = await ask(url, { path: "/api/admin/functions/rollback", body, bearer });
    body = { hash };
    return REPEATABLE.includes(answer.body.errorData?.code) ? null : answer;
  });
}

/** Returns the result of a server; `null` if it does not answer. */
async function look(url: string): Promise<{ readonly code: number; readonly by: number } | null> {
  try {
    const { body } = await ask(url, { path: "/api/query", body: { path: "app:look", args: {} } });
    return body.status === "success" ? body.value : null;
  } catch {
    return null;
  }
}

/** Returns the version that a server shows when it answers, which it may not do while the leader changes. */
const shown = async (url: string): Promise<number> => (await found(() => look(url))).code;

/** Waits until a server serves a version. With `server`, the error contains its output. */
const serve = (url: string, code: number, server?: ClusterProcess) => {
  let seen: Awaited<ReturnType<typeof look>> = null;
  return until(async () => {
    seen = await look(url);
    return seen?.code === code;
  }, { what: () => `${url} serves version ${code}, not ${JSON.stringify(seen)}\n${server?.last() ?? ""}` });
};

/** Adds marks repeatedly with short pauses, at one server after the other. */
class Marker implements AsyncDisposable {
  #stopped = false;
  readonly #work: Promise<void>;
  marked = 0;

  constructor(servers: readonly ClusterProcess[]) {
    this.#work = this.#run(servers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }

  async #run(servers: readonly ClusterProcess[]): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const server = servers[n % servers.length];
      const name = `${crypto.randomUUID()} 1`;
      // A stopped server refuses it.
      const asked = ask(server?.url ?? "", {
        path: "/api/mutation",
        body: { path: "app:mark", args: {} },
        name,
      });
      if (await asked.then(({ body }) => body.status === "success", () => false)) this.marked++;
      await pause(20);
    }
  }
}

Deno.test({
  ...needs(
    postgres,
    "[PG18] [PG19] [PG20] a deploy by any server reaches all, also one that was stopped, and a ts has one version on every server",
  ),
  // Killed servers leave resources open.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using postgres = await TestPostgres.start();
    await using rig = await ProcessRig.start(await postgres.database(), 3, { deployed: true });
    const [a, b, c] = rig.servers as [ClusterProcess, ClusterProcess, ClusterProcess];
    await a.start();
    await until(() => a.setupToken !== null);
    const bearer = await bearerOf(a.url, a.setupToken);
    await Promise.all([b.start(), c.start()]);
    const all = [a, b, c];

    // Through a follower, which shows the result when it answers.
    const first = await deploy(b.url, bearer, app(1));
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.equal(await shown(b.url), 1);
    await Promise.all(all.map((server) => serve(server.url, 1, server)));
    for (const { url } of all) {
      await until(async () => /version 1/.test(await (await fetch(url)).text()), {
        what: `${url} serves the frontend of version 1`,
      });
    }

    const faults: string[] = [];
    await using view = new CodeView(all.map(({ url }) => url), faults);
    await using marker = new Marker(all);
    const marks = async (more: number) => {
      const before = marker.marked;
      await until(() => marker.marked >= before + more || faults.length > 0);
    };
    await marks(5);

    // A broken version changes nothing.
    const broken = await deploy(c.url, bearer, { ...app(9), "functions/app.ts": "throw new Error();" });
    assert.deepEqual([broken.status, broken.body.errorData?.code], [400, "broken_functions"]);

    const second = await deploy(c.url, bearer, app(2));
    assert.equal(second.status, 200, JSON.stringify(second.body));
    await Promise.all(all.map((server) => serve(server.url, 2, server)));
    await marks(5);

    // One server is stopped during a deploy, and then the leader is killed.
    const leader = await found(() => rig.leader(), { what: "there is a leader" });
    const away = all.find((server) => server !== leader) ?? c;
    const left = all.find((server) => server !== leader && server !== away) ?? b;
    await away.end("SIGKILL");
    const third = await deploy(left.url, bearer, app(3));
    assert.equal(third.status, 200, JSON.stringify(third.body));
    assert.equal(await shown(left.url), 3);
    await leader.end("SIGKILL");
    await until(async () => await rig.leader() === left, { what: "the last server leads" });
    assert.equal(await shown(left.url), 3);
    await away.start();
    assert.equal(await shown(away.url), 3, away.last());
    await marks(5);

    // Roll back to the previous version, which was not uploaded to the current leader.
    const back = await rollBack(away.url, bearer, second.body.hash);
    assert.equal(back.status, 200, JSON.stringify(back.body));
    await Promise.all([left, away].map((server) => serve(server.url, 2, server)));
    await leader.start();
    assert.equal(await shown(leader.url), 2, leader.last());
    await marks(5);
    const versions = await found(async () => {
      const path = "/api/admin/functions/versions";
      return (await ask(leader.url, { method: "GET", path, bearer })).body.versions;
    }, { what: "the versions are listed" });
    const hash = second.body.hash;
    const reported = versions.map((
      version: { hash: string; current: boolean },
    ) => [version.hash, version.current]);
    assert.deepEqual(reported, [[hash, true], [third.body.hash, false], [first.body.hash, false]]);

    await marker[Symbol.asyncDispose]();
    assert.deepEqual(faults, []);
    assert.deepEqual(view.codes, [1, 2, 3, 2], "each ts has one code, and each code its stretch of ts");
  },
});

async function health(server: TestServer): Promise<number> {
  const response = await fetch(`${server.url}/api/health`);
  await response.body?.cancel();
  return response.status;
}

Deno.test(
  needs(
    postgres,
    "[PG19] a server that cannot load the code serves nothing, and one with other code does not start",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    await using rig = await ClusterRig.make(await postgres.database());
    await using a = await rig.first("a", { pinned: false });
    const bearer = await bearerOf(a.url, a.setupLink?.split("=").at(-1) ?? null);
    await using open = new AsyncDisposableStack();
    const b = open.use(await rig.start("b", { pinned: false }));
    assert.equal((await deploy(a.url, bearer, app(1))).status, 200);
    await serve(b.url, 1);
    const { read } = SharedVersions.prototype;
    let asked = 0;
    SharedVersions.prototype.read = async function (hash) {
      asked++;
      const bundle = await read.call(this, hash);
      // A bundle that does not match its hash is rejected.
      return bundle?.pipeThrough(
        new TransformStream({
          transform(chunk, controller) {
            chunk.fill(0, chunk.length >> 1);
            controller.enqueue(chunk);
          },
        }),
      ) ?? null;
    };
    try {
      assert.equal((await deploy(a.url, bearer, app(2))).status, 200);
      assert.equal(await shown(a.url), 2);
      await until(async () => await health(b) === 503, { what: "nothing is served" });
      const tries = asked;
      await until(() => asked > tries + 1, { what: "the download is retried" });
      assert.equal(await look(b.url), null);
      assert.equal(await shown(a.url), 2);
    } finally {
      SharedVersions.prototype.read = read;
    }
    await serve(b.url, 2);
    await open.disposeAsync();
    await assert.rejects(
      rig.start("b", { pinned: true }),
      (error: Error) =>
        error instanceof StartError && /start the server without --functions/.test(error.message),
    );
    await Deno.stat(join(rig.folder, "b", "data.db"));
    // It works like any other server again.
    await using again = await rig.start("b", { pinned: false });
    await serve(again.url, 2);
    // A row that cannot be applied now, like on a full disk, changes nothing until it can be applied.
    const { apply } = FollowingWriter.prototype;
    let refused = 0;
    FollowingWriter.prototype.apply = function (rows, options) {
      if (options?.publishes !== false) return apply.call(this, rows, options);
      refused++;
      return Promise.reject(new RowsRefusedError("There is no room", { unfit: false }));
    };
    try {
      assert.equal((await deploy(a.url, bearer, app(3))).status, 200);
      await until(() => refused > 0, { what: "the row is refused" });
      assert.equal(await shown(again.url), 2);
    } finally {
      FollowingWriter.prototype.apply = apply;
    }
    await serve(again.url, 3);
  },
);

Deno.test(
  needs(
    postgres,
    "[PG18] [PG20] a single server starts its cluster with its deployed versions, and can roll back",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    await using rig = await ClusterRig.make(await postgres.database());
    let bearer = "";
    {
      await using alone = await rig.start("a", { pinned: false, cluster: null });
      bearer = await bearerOf(alone.url, alone.setupLink?.split("=").at(-1) ?? null);
      for (const version of [1, 2]) {
        assert.equal((await deploy(alone.url, bearer, app(version))).status, 200);
      }
    }
    await using a = await rig.first("a", { pinned: false });
    await serve(a.url, 2);
    {
      await using b = await rig.start("b", { pinned: false });
      await serve(b.url, 2);
    }
    // The others find the version that it serves and may return to it.
    await using client = {
      it: await postgres.client("test_1"),
      [Symbol.asyncDispose]: () => client.it.end(),
    };
    const { rows } = await client.it.query("select hash from syncline.versions where served_at is not null");
    assert.equal(rows.length, 1);
    const back = await ask(a.url, { path: "/api/admin/functions/rollback", body: {}, bearer });
    assert.equal(back.status, 200, JSON.stringify(back.body));
    await serve(a.url, 1);
  },
);

Deno.test(
  needs(
    postgres,
    "[PG19] a server that was stopped during the first deploy finds it in the log, without a snapshot",
  ),
  async () => {
    await using postgres = await TestPostgres.start();
    await using rig = await ClusterRig.make(await postgres.database());
    await using a = await rig.first("a", { pinned: false });
    const bearer = await bearerOf(a.url, a.setupLink?.split("=").at(-1) ?? null);
    await using b = await rig.start("b", { pinned: false });
    const snapshots = join(rig.folder, "snapshots");
    await b.restart(async () => {
      assert.equal((await deploy(a.url, bearer, app(1))).status, 200);
      // No server could have one now.
      await Deno.rename(snapshots, `${snapshots} away`);
    });
    await Deno.rename(`${snapshots} away`, snapshots);
    await serve(b.url, 1);
    const fetched = b.logged.filter((line) =>
      line.includes("Downloading the newest snapshot of the cluster")
    );
    assert.equal(fetched.length, 1, "as it began");
  },
);
