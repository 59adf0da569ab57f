/** A restart as a supervisor sees it: a real process and its exit code. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Child } from "../../support/processes/child.ts";
import { TestSocket } from "../../auth/server/test_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";

const FUNCTIONS = `
import { untypedQuery } from "syncline/server";
export const one = untypedQuery({ args: {}, handler: () => 1 });
`;

Deno.test("[AD7] a restart is answered, closes sockets with 1012 and exits with the configured code", async () => {
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  const functionsDir = join(dir, "functions");
  await Deno.mkdir(functionsDir);
  await Deno.writeTextFile(join(functionsDir, "app.ts"), FUNCTIONS);
  await using child = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --port 0 --restart-exit-code 75".split(" "),
      ...["--data", join(dir, "data"), "--functions", functionsDir],
    ],
  });
  const [, url = "", setup = ""] = await child.line(/(http:\S+)\/_\/#svc_setup_token=(\S+)/);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const account = { email: "root@example.com", password: "correct horse" };
  const { accessToken } = await (await post("/api/auth/admin/setup", { token: setup, ...account })).json();
  const authorization = { Authorization: `Bearer ${accessToken}` };
  // With the permissions of the server, not of this test.
  const backup = await post("/api/admin/backups", { includeFiles: true }, authorization);
  const { name, ...made } = await backup.json();
  assert.equal(backup.status, 200, JSON.stringify(made));
  const archive = await fetch(`${url}/api/admin/backups/${name}`, { headers: authorization });
  const staged = await fetch(`${url}/api/admin/restore?name=${name}`, {
    method: "POST",
    headers: authorization,
    body: await archive.bytes(),
  });
  const { restore, ...refusal } = await staged.json();
  assert.equal(restore?.ts, made.ts, JSON.stringify(refusal));
  await using socket = await TestSocket.open(`${url}/api/sync`);
  const refused = await post("/api/admin/restore/restart", {});
  assert.deepEqual([refused.status, (await refused.json()).errorData.code], [401, "invalid_token"]);
  const response = await post("/api/admin/restore/restart", {}, authorization);
  assert.deepEqual([response.status, await response.json()], [200, {}]);
  assert.equal((await child.exited).code, 75);
  await socket.closed;
  assert.equal(socket.closeCode, 1012);
});
