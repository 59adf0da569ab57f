/** The commands that ask a running server: `run` and `users ...`, by the local socket in its data folder. */
import assert from "node:assert/strict";
import { adminSocketFile } from "../../mod/auth/mod.ts";
import { LocalSocket } from "../../mod/kit/local_socket.ts";
import { startTestServer } from "../auth/server/test_server.ts";
import { Commands } from "../support/commands.ts";

const commands = Commands.with("serve");

const functions = {
  "notes.ts": `
    import { untypedInternalQuery, untypedMutation, UserError } from "syncline/server";
    import { z } from "zod";
    export const twice = untypedInternalQuery({ args: { n: z.number() }, handler: (ctx, { n }) => {
      ctx.log.info("doubling", { n });
      return 2 * n;
    } });
    export const refuse = untypedMutation({ handler: () => { throw new UserError("no", "Not today"); } });`,
};

Deno.test("OP1 OP2 functions are run and users managed from the command line, while the server runs", async () => {
  await using server = await startTestServer({ functions });
  const syncline = (args: readonly string[], stdin = "") =>
    commands.run([...args, "--data", server.dataDir], { stdin });
  const ran = await syncline(["run", "notes:twice", '{"n":21}']);
  assert.deepEqual([ran.code, ran.out, ran.err], [0, "42\n", "[INFO] doubling n=21\n"]);
  const refused = await syncline(["run", "notes:refuse"]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /Not today/);
  assert.match((await syncline(["run", "notes:none"])).err, /Function "notes:none" not found/);
  assert.match((await syncline(["run", "notes:twice", "[1]"])).err, /have to be a JSON object/);

  const created = await syncline(["users", "create", "ada@example.com"]);
  const password = /Password: (\S+)/.exec(created.out)?.[1];
  const signIn = (chosen: string | undefined) =>
    server.post("/api/auth/signin", { email: "ada@example.com", password: chosen });
  assert.equal((await signIn(password)).status, 200);
  assert.match((await syncline(["users", "list", "ada"])).out, /^ada@example\.com {2}created .* sessions 1 /);
  assert.equal(
    (await syncline(["users", "set-password", "ada@example.com", "--password-stdin"], "a new password\n"))
      .out,
    "Set the password of ada@example.com, ended 1 session.\n",
  );
  assert.equal((await signIn("a new password")).status, 200);
  assert.equal(
    (await syncline(["users", "delete", "ada@example.com"])).out,
    "Deleted ada@example.com and 0 documents of theirs.\n",
  );
  assert.equal((await syncline(["users", "list"])).out, "There are no users.\n");

  const { body: bob } = await server.post("/api/auth/signup", {
    email: "bob@example.com",
    password: "correct horse",
  });
  assert.match((await syncline(["users", "list"])).out, /^bob@example\.com {2}not verified {2}created /);
  assert.equal(
    (await syncline(["users", "verify", "bob@example.com"])).out,
    "The address of bob@example.com is verified.\n",
  );
  assert.doesNotMatch((await syncline(["users", "list"])).out, /not verified/);
  assert.equal(
    (await syncline(["users", "revoke-sessions", bob.userId])).out,
    `Ended 1 session of ${bob.userId}.\n`,
  );
  const refresh = await server.post("/api/auth/refresh", { refreshToken: bob.refreshToken });
  assert.equal(refresh.status, 401, "the session is over");
  const gone = await syncline(["users", "verify", "ada@example.com"]);
  assert.equal(gone.code, 1);
  assert.match(gone.err, /User ada@example\.com does not exist/);
});

Deno.test("OP1 a command whose connection closes reports that its call may have taken effect", async () => {
  const folder = await Deno.makeTempDir();
  try {
    using socket = await LocalSocket.open(folder, adminSocketFile);
    const closed = socket.listener.accept().then(async (connection) => {
      // A connection that closes before it received anything cannot have started the call.
      await connection.read(new Uint8Array(1));
      connection.close();
    });
    const ran = await commands.run(["run", "notes:twice", "--data", folder]);
    await closed;
    assert.equal(ran.code, 1);
    assert.match(ran.err, /closed the connection before it answered.* may have taken effect/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
