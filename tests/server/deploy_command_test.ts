/** The commands that deploy: from a folder of functions to a running server, and back. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { firstApp, secondApp, startDeployWorld } from "../ops/deploy/support.ts";
import { Commands } from "../support/commands.ts";
import { programModule } from "../support/processes/program_module.ts";

const commands = { deploy: Commands.with("deploy"), serve: Commands.with("serve") };

Deno.test("an app is deployed, managed and migrated from the command line", async (t) => {
  await using world = await startDeployWorld();
  const { server, call } = world;
  const folder = await Deno.realPath(await Deno.makeTempDir());
  await using _folder = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
  const write = async (files: Readonly<Record<string, string>>) => {
    await Deno.remove(join(folder, "functions"), { recursive: true }).catch(() => {});
    for (const [name, text] of Object.entries(files)) {
      const path = join(folder, name);
      await Deno.mkdir(join(path, ".."), { recursive: true });
      await Deno.writeTextFile(path, text);
    }
  };
  const onServer = (...args: string[]) =>
    commands.serve.run([...args, "--data", server.dataDir], { cwd: folder });
  let key = "";
  const deploy = (...args: string[]) =>
    commands.deploy.run(args, {
      cwd: folder,
      env: { SYNCLINE_URL: server.url, ...(key !== "" && { SYNCLINE_DEPLOY_KEY: key }) },
    });

  await t.step("CD4 keys are created, listed and revoked on the server's machine", async () => {
    const made = await onServer("deploy-key", "create", "ci");
    assert.equal(made.code, 0, made.err);
    key = made.out.trim();
    assert.match(key, /^syncline_deploy_[\w-]{43}$/);
    const list = () => onServer("deploy-key", "list");
    assert.match((await list()).out, /^ci {2}syncline_deploy_[\w-]{6} {2}created \S+ {2}never used\n$/);
    assert.equal((await onServer("api-key", "list")).out, "There are no API keys.\n");
    const twice = (await onServer("deploy-key", "create", "ci")).out;
    assert.match((await onServer("deploy-key", "revoke", "ci")).err, /Several deploy keys are named ci/);
    const revoked = await onServer("deploy-key", "revoke", twice.slice(0, "syncline_deploy_".length + 6));
    assert.equal(revoked.out, "Revoked deploy key ci.\n", revoked.err);
    assert.equal((await list()).out.split("\n").length, 2);
  });

  await t.step("CD1 a dry run shows the changes, a deploy applies them", async () => {
    await write(secondApp);
    const dry = await deploy("deploy", "--dry-run", "--env", "MODE=dry");
    assert.equal(dry.code, 0, dry.err);
    for (const line of ["+ function notes:fresh", "- function notes:gone", "~ function notes:version"]) {
      assert.ok(dry.out.includes(`${line}\n`), dry.out);
    }
    assert.match(dry.out, /\+ index notes\.by_text\n- index notes\.by_body\n/);
    assert.match(dry.out, /this was a dry run/);
    assert.equal(await call("query", "notes:version"), "one");
    await Deno.writeTextFile(join(folder, ".env.production"), "TOKEN=from a file\n");
    const done = await deploy("deploy", "--env", "MODE=a, b", "--env-file", ".env.production");
    assert.equal(done.code, 0, done.err);
    assert.match(
      done.out,
      /Set TOKEN, MODE in ctx\.env\.\n[^]*Serving [0-9a-f]{32} in place of [0-9a-f]{32}\.\n$/,
    );
    assert.equal(await call("query", "notes:version"), "two");
    assert.deepEqual(await call("action", "notes:env"), { MODE: "a, b", TOKEN: "from a file" });
  });

  await t.step("CD2 an unchanged app is not sent again, nor one that the server still has", async () => {
    assert.match((await deploy("deploy")).out, /^Nothing has changed: [0-9a-f]{32} is served\.\n$/);
    await write(firstApp);
    await deploy("deploy");
    assert.equal(await call("query", "notes:version"), "one");
    await write(secondApp);
    const again = await deploy("deploy");
    assert.equal(again.code, 0, again.err);
    assert.equal(await call("query", "notes:version"), "two");
    const { page } = await call(
      "query",
      "_admin/audit:list",
      { paginationOpts: { cursor: null, numItems: 1 } },
      world.admin,
    );
    assert.equal(page[0].action, "POST /api/admin/functions/rollback");
  });

  await t.step("CD1 rollback serves the previous version", async () => {
    const back = await deploy("rollback");
    assert.equal(back.code, 0, back.err);
    assert.match(back.out, /\+ function notes:gone\n/);
    assert.equal(await call("query", "notes:version"), "one");
    const none = await deploy("rollback", "0".repeat(32));
    assert.deepEqual([none.code, none.out], [1, ""]);
    assert.match(none.err, /There is no such version\. The server has [0-9a-f]{32}, [0-9a-f]{32}/);
    const [served, next] =
      /^ {2}(\w{32}) .*\(served\)\n {2}(\w{32}) .*\(next rollback\)$/m.exec(back.out)?.slice(1) ?? [];
    const forward = await deploy("rollback");
    assert.match(forward.out, new RegExp(`Serving ${next} in place of ${served}`));
    assert.equal((await deploy("rollback", served?.slice(0, 12) ?? "")).code, 0);
  });

  await t.step(
    "DP13 a deploy without --static keeps the served frontend, --no-static removes it",
    async () => {
      const page = async () => {
        const response = await fetch(server.url, { redirect: "manual" });
        return [response.status, await response.text()];
      };
      await write({ ...firstApp, "dist/index.html": "<h1>mine</h1>" });
      const missing = await deploy("deploy", "--static", "build");
      assert.match(missing.err, /There is no folder "[^"]*build" \(--static\): build the frontend first/);
      assert.equal((await deploy("deploy", "--static", "dist")).code, 0);
      await write(secondApp);
      const kept = await deploy("deploy");
      assert.match(kept.out, /^~ function notes:version$/m);
      assert.doesNotMatch(kept.out, /\d changed$/m);
      assert.equal(await call("query", "notes:version"), "two");
      assert.deepEqual(await page(), [200, "<h1>mine</h1>"]);
      assert.match((await deploy("deploy")).out, /Nothing has changed: [0-9a-f]{32} is served/);
      const removed = await deploy("deploy", "--no-static");
      assert.match(removed.out, /^! the frontend is removed/m);
      assert.equal((await page())[0], 302);
      assert.match((await deploy("rollback")).out, /^frontend: 1 file added/m);
      assert.deepEqual(await page(), [200, "<h1>mine</h1>"]);
      await write(firstApp);
      assert.equal((await deploy("deploy", "--no-static")).code, 0);
    },
  );

  await t.step("CD3 exit codes and one line describe the error", async () => {
    await call("mutation", "notes:add", { body: "much too long" });
    await write({
      ...firstApp,
      "functions/schema.ts": (firstApp["functions/schema.ts"] ?? "").replace(
        "notes: defineTable({ body: z.string() })",
        "notes: defineTable({ body: z.string().max(3) })",
      ),
    });
    const unfit = await deploy("deploy", "--dry-run");
    assert.equal(unfit.code, 3, unfit.err);
    assert.match(unfit.out, /! 1 document of notes does not fit:\n {4}\w+ {2}.*body/);
    assert.match(unfit.err, /syncline migrate/);
    await write({ "functions/bad.ts": "export const = 1;" });
    // Checked before the variable is set, because it is not there afterwards.
    const broken = await deploy("deploy", "--env", "LATE=x");
    assert.equal(broken.code, 1);
    assert.match(broken.err, /bad\.ts/);
    // The app is bundled while the server is asked, so a broken one could be the first error.
    await write(firstApp);
    assert.equal((await deploy("deploy", "--url", "not a url")).code, 2);
    const away = await deploy("deploy", "--url", "http://127.0.0.1:1");
    assert.equal(away.code, 1);
    assert.match(away.err, /127\.0\.0\.1:1 cannot be reached/);
    const revocation = await onServer("deploy-key", "revoke", "ci");
    assert.equal(revocation.code, 0, revocation.err);
    const revoked = await deploy("deploy");
    assert.equal(revoked.code, 1);
    assert.match(revoked.err, /does not know the deploy key/);
    key = "";
    assert.match((await deploy("deploy")).err, /SYNCLINE_DEPLOY_KEY/);
    for (const { err } of [away, revoked]) assert.equal(err.trim().split("\n").length, 1, err);
  });

  await t.step(
    "CD5 OP3 a table is migrated with the number of its documents, and a dry run changes nothing",
    async () => {
      key = (await onServer("deploy-key", "create", "second")).out.trim();
      await write({
        ...firstApp,
        "functions/change.ts": `
        import { id, untypedInternalMutation } from "syncline/server";
        export const shorten = untypedInternalMutation({ args: { id: id("notes") }, handler: async (ctx, { id }) => {
          await ctx.db.patch(id, { body: "abc" });
        } });`,
      });
      assert.equal((await deploy("deploy")).code, 0);
      const dry = await onServer("migrate", "change:shorten", "--table", "notes", "--dry-run");
      assert.equal(dry.out, "Tried 1 document of notes: 1 would change. Nothing has changed.\n", dry.err);
      const done = await onServer("migrate", "change:shorten", "--table", "notes");
      assert.equal(done.out, "Migrated 1 document of notes.\n", done.err);
      assert.match(done.err, /^Migrating notes, 1 document$/m, "progress is shown");
      assert.deepEqual((await call("query", "notes:list")).map(({ body }: { body: string }) => body), [
        "abc",
      ]);
      const none = await onServer("migrate", "change:none", "--table", "notes");
      assert.equal(none.code, 1);
      assert.match(none.err, /Internal mutation "change:none" not found/);
    },
  );

  await t.step("EV1 variables are listed, set and forgotten on the server's machine", async () => {
    assert.equal((await onServer("env", "set", "A=x=y")).out, "Set A.\n");
    assert.equal((await onServer("env", "list")).out, "A=x=y\nMODE=a, b\nTOKEN=from a file\n");
    assert.equal((await onServer("env", "unset", "A")).out, "Forgot A.\n");
    assert.equal((await call("action", "notes:env")).A, undefined);
  });
});

Deno.test("CD3 DP8 a server that serves a folder is detected before anything is sent", async () => {
  await using world = await startDeployWorld({ config: { pinned: true } });
  const { key } = await world.call(
    "action",
    "_admin/apiKeys:create",
    { name: "ci", deploy: true },
    world.admin,
  );
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "-P=deploy", programModule("cli.ts"), "deploy"],
    cwd: new URL("../../examples/transfer", import.meta.url),
    env: { NO_COLOR: "1", SYNCLINE_URL: world.server.url, SYNCLINE_DEPLOY_KEY: key },
  }).output();
  const decoder = new TextDecoder();
  assert.deepEqual([code, decoder.decode(stdout)], [1, ""]);
  assert.match(
    decoder.decode(stderr),
    /start it without --functions and --dev docs=\S+\/docs\/deploying\.md\n$/,
  );
});

Deno.test("CD3 an interrupted upload is one line and exit code 1, in the middle or after its end", async (t) => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  await using _folder = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
  await Deno.mkdir(join(folder, "functions"));
  for (const [name, text] of Object.entries(firstApp)) await Deno.writeTextFile(join(folder, name), text);
  for (const where of ["in the middle", "behind its end"] as const) {
    await t.step(where, async () => {
      await using server = new CuttingServer(where);
      const { code, out, err } = await commands.deploy.run(["deploy"], {
        cwd: folder,
        env: { SYNCLINE_URL: server.url, SYNCLINE_DEPLOY_KEY: "syncline_deploy_key" },
      });
      assert.deepEqual([code, out], [1, ""], err);
      assert.match(err.trim(), /^[^\n]* cannot be reached: [^\n]*Nothing is known to have changed[^\n]*$/);
      assert.equal(server.uploads, 1);
    });
  }
});

/** Reports that it serves nothing yet, and drops the connection while it receives a version. */
class CuttingServer implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #serving: Promise<void>;
  uploads = 0;

  constructor(where: "in the middle" | "behind its end") {
    this.#serving = this.#serve(where);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  async #serve(where: "in the middle" | "behind its end"): Promise<void> {
    for await (const connection of this.#listener) {
      using open = connection;
      // The last chunk of a body has no bytes.
      if (await isUpload(open, { until: where === "in the middle" ? "\r\n\r\n" : "\r\n0\r\n\r\n" })) {
        this.uploads++;
        continue;
      }
      const body = JSON.stringify({ pinned: false, versions: [] });
      const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      await open.write(new TextEncoder().encode(`${head}\r\nConnection: close\r\n\r\n${body}`));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#serving;
  }
}

/** Reads the head of a request, and of an upload everything up to a text. Returns whether it is an upload. */
async function isUpload(connection: Deno.Conn, { until }: { readonly until: string }): Promise<boolean> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  while (!text.includes(text.startsWith("PUT ") ? until : "\r\n\r\n")) {
    const length = await connection.read(buffer);
    if (length === null) break;
    text += new TextDecoder("latin1").decode(buffer.subarray(0, length));
  }
  return text.startsWith("PUT ");
}
