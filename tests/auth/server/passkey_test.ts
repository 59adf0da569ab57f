/** Passkeys on a whole server: in real isolates, live, after a restart and in a restored backup. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { TestAuthenticator } from "../support/test_authenticator.ts";
import { startTestServer } from "./test_server.ts";

const password = "correct horse";

Deno.test("PK1 passkeys are live, and remain after restarts and restores", async (t) => {
  await using server = await startTestServer();
  const { body: { accessToken: bearer } } = await server.post("/api/auth/signup", {
    email: "a@example.com",
    password,
  });
  const act = async (name: string, args: object, token: string | undefined = bearer) => {
    const { body } = await server.post("/api/action", { path: `_auth:${name}`, args }, { bearer: token });
    assert.equal(body.status, "success", JSON.stringify(body));
    return body.value;
  };
  /** The page of the server, which has another port after a restart. */
  const origin = () => server.url.replace("127.0.0.1", "localhost");
  const authenticator = new TestAuthenticator();
  const signIn = async () => {
    const { body } = await server.post("/api/action", { path: "_auth:startPasskeySignIn", args: {} });
    const response = authenticator.get(body.value.options, { origin: origin() });
    return await server.post("/api/auth/passkey/verify", { response });
  };

  await t.step("PK1 a new passkey appears in a live query", async () => {
    await using socket = await server.socket(bearer);
    await socket.identityVersion(1);
    socket.subscribe("_auth:listPasskeys");
    const { options } = await act("startPasskey", { password });
    await act("addPasskey", { name: "Phone", response: authenticator.create(options, { origin: origin() }) });
    const shown = await socket.message(({ modifications: [first] = [] }) => first?.value?.length === 1);
    assert.equal(shown.modifications[0].value[0].name, "Phone");
    assert.equal((await signIn()).status, 200);
  });

  await t.step("PK1 passkeys survive a restart", async () => {
    await server.restart();
    assert.equal((await signIn()).status, 200);
  });

  await t.step("PK4 a restored backup has the passkeys and counters of its time", async () => {
    const archive = join(server.dataDir, "..", "one.tar.zst");
    const options = { withAux: false, withFiles: false, includeSecret: false };
    await createBackup({ dataDir: server.dataDir, out: archive, ...options });
    assert.equal((await signIn()).status, 200);
    await server.restart(async () => {
      await stageRestore({ dataDir: server.dataDir, archive, source: "one", withSecret: false });
    });
    const { status, body } = await signIn();
    assert.equal(status, 200);
    const [passkey] = (await server.post("/api/query", { path: "_auth:listPasskeys", args: {} }, {
      bearer: body.accessToken,
    })).body.value;
    await act("removePasskey", { passkeyId: passkey.passkeyId }, body.accessToken);
    assert.equal((await signIn()).body.errorData.code, "unknown_passkey");
  });
});
