/** The commands `admin ...` on the command line, with a running server and without one. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { startTestServer } from "./test_server.ts";
import { Commands, type Ran } from "../../support/commands.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { TestAuthenticator } from "../support/test_authenticator.ts";
import { codeOf } from "../support/test_factors.ts";

const commands = Commands.with("serve");

function admin(dataDir: string, args: readonly string[], stdin = ""): Promise<Ran> {
  return commands.run(["admin", ...args, "--data", dataDir], { stdin });
}

const email = "admin@example.com";
const passwordIn = ({ out }: Ran) => /Password: (\S+)/.exec(out)?.[1] ?? "";

Deno.test("administrators are managed while the server is running or stopped", async () => {
  await using server = await startTestServer({
    functions: {
      "schema.ts": `import { defineSchema, defineTable } from "syncline/server";
        import { z } from "zod";
        export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"]) });`,
      "notes.ts": `import { untypedMutation, untypedQuery } from "syncline/server";
        export const add = untypedMutation((ctx) => ctx.db.insert("notes", { text: "kept" }));
        export const find = untypedQuery((ctx) => ctx.db.query("notes").withIndex("by_text", (q) => q.eq("text", "kept")).take(1));`,
    },
  });
  const signIn = (password: string) => server.post("/api/auth/admin/signin", { email, password });

  const created = await admin(server.dataDir, ["create", email]);
  assert.equal(created.code, 0, created.err);
  const first = passwordIn(created);
  const session = await signIn(first);
  assert.equal(session.status, 200);
  assert.match((await admin(server.dataDir, ["list"])).out, /^admin@example\.com +created .* sessions 1\n$/);
  assert.deepEqual(await admin(server.dataDir, ["create", email]), {
    code: 1,
    out: "An account with this email address already exists\n",
    err: "",
  });

  await using socket = await server.socket(session.body.accessToken);
  await socket.identityVersion(1);
  const revoked = await admin(server.dataDir, ["revoke-sessions", email]);
  assert.match(revoked.out, /Ended 1 session of/);
  await socket.closed;
  assert.equal(socket.messages.at(-1).error, "session has ended");

  const { body: { accessToken } } = await signIn(first);
  const act = (name: string, args: object) =>
    server.post("/api/action", { path: `_admin/administrators:${name}`, args }, { bearer: accessToken });
  const { body: { value: { enrolmentId, secret } } } = await act("startTotp", { password: first });
  await act("confirmTotp", { enrolmentId, code: codeOf(secret, Date.now()) });
  assert.equal((await signIn(first)).body.errorData.code, "mfa_required");
  const started = await act("startPasskey", {});
  assert.equal(started.status, 200, JSON.stringify(started.body));
  const authenticator = new TestAuthenticator({ origin: server.url.replace("127.0.0.1", "localhost") });
  const response = authenticator.create(started.body.value.options);
  const added = await act("addPasskey", { response });
  assert.equal(added.status, 200, JSON.stringify(added.body));
  const reset = await admin(server.dataDir, ["reset-password", email, "--password-stdin"], first);
  assert.equal(
    reset.out,
    "Set the password, ended 1 session of admin@example.com.\n" +
      "1 passkey still signs in. To remove the factors, run admin remove-factors admin@example.com.\n",
  );
  const removed = await admin(server.dataDir, ["remove-factors", email]);
  assert.equal(removed.out, "Removed the second factors and passkeys of admin@example.com.\n");
  assert.equal((await signIn(first)).status, 200);
  assert.deepEqual(await admin(server.dataDir, ["remove-factors", "nobody@example.com"]), {
    code: 1,
    out: "No account has the address nobody@example.com.\n",
    err: "",
  });

  await server.post("/api/mutation", { path: "notes:add", args: {} });
  let offline = created;
  await server.restart(async () => {
    offline = await admin(
      server.dataDir,
      ["reset-password", email, "--password-stdin"],
      "a new password\nmore",
    );
  });
  assert.equal(offline.code, 0, offline.err);
  assert.equal(passwordIn(offline), "");
  assert.equal((await signIn(first)).status, 401);
  assert.equal((await signIn("a new password")).status, 200);
  const { body } = await server.post("/api/query", { path: "notes:find", args: {} });
  assert.equal(body.value[0].text, "kept");
});

Deno.test("accounts cannot change while a staged restore would replace them", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const dataDir = join(folder, "data");
  await Deno.mkdir(dataDir);
  assert.equal((await admin(dataDir, ["create", email])).code, 0);
  const archive = join(folder, "one.tar.zst");
  await createBackup({ dataDir, out: archive, withAux: false, withFiles: false, includeSecret: false });
  await stageRestore({ dataDir, archive, source: "one.tar.zst", withSecret: false });
  for (
    const args of [["create", "b@example.com"], ["reset-password", email], ["revoke-sessions", email], [
      "remove-factors",
      email,
    ]]
  ) {
    const { code, out, err } = await admin(dataDir, args);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /A restore of "one\.tar\.zst" is staged in .*restore --cancel --data "/);
  }
  assert.match((await admin(dataDir, ["list"])).out, /^admin@example\.com .*\n$/);
});

Deno.test("a command that fails prints the reason and exits with code 1", async () => {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  const nowhere = await admin(join(folder, "nowhere"), ["list"]);
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.err, /Data folder ".*" does not exist/);
  const empty = await admin(folder, ["list"]);
  assert.deepEqual([empty.code, empty.out], [0, "There are no administrators.\n"]);
  for (const command of ["reset-password", "revoke-sessions"]) {
    const missing = await admin(folder, [command, "nobody@example.com"]);
    assert.deepEqual([missing.code, missing.out], [1, "No account has the address nobody@example.com.\n"]);
  }
  const weak = await admin(folder, ["create", email, "--password-stdin"], "short\n");
  assert.equal(weak.code, 1);
  assert.match(weak.out, /at least 8 characters/);
  assert.equal((await admin(folder, ["create"])).code, 2);
});

Deno.test("only the owner can open the local socket, even if the path of the folder is long", async () => {
  await using server = await startTestServer();
  const { mode } = await Deno.stat(join(server.dataDir, "admin.sock"));
  assert.equal((mode ?? 0) & 0o777, 0o600);
  const long = join(await Deno.makeTempDir(), "x".repeat(120), "y".repeat(120));
  await using deep = await startTestServer({ config: { dataDir: long } });
  const socket = await Deno.realPath(join(long, "admin.sock"));
  assert.equal(((await Deno.stat(socket)).mode ?? 0) & 0o777, 0o600);
  assert.equal((await admin(long, ["create", email])).code, 0);
  assert.equal(deep.setupLink?.includes("svc_setup_token"), true);
});
