/** Permissions of a worker: enough for its work, and none of those that the probe tries. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { workerPermissions } from "../../mod/server/workers/worker_process.ts";
import { workerConfig } from "../../mod/server/workers/boot.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { TempFolder } from "../support/temp_folder.ts";

const PROBE = fileURLToPath(new URL("../server/support/permission_probe.ts", import.meta.url));
const ALLOWED = ["listen", "reach another machine", "start sh"];

Deno.test("[WK10] a worker writes only to the data folder, starts only sh, and reads no other environment", async () => {
  using folder = new TempFolder();
  const config = workerConfig(testConfig({ dataDir: folder.path }));
  const flags = await workerPermissions({
    name: "worker-1",
    host: "127.0.0.1",
    port: 1,
    link: { path: folder.at("l"), secret: "" },
    passed: { path: folder.at("p") },
    settings: {},
    config,
  });
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--no-config", ...flags, PROBE],
    env: { SYNCLINE_PROBE: "1", TMPDIR: "/tmp" },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  const outcomes = JSON.parse(new TextDecoder().decode(stdout)) as Record<string, string>;
  const expected = Object.keys(outcomes).map((
    name,
  ) => [name, ALLOWED.includes(name) ? "allowed" : "refused"]);
  assert.deepEqual(outcomes, Object.fromEntries(expected));
});
