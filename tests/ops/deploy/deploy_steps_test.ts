/** A server that is killed or has a full disk at any step of a deploy then serves either the old or the new version. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { runtimeEnvironment } from "../../../mod/kit/processes/program.ts";
import { Child } from "../../support/processes/child.ts";
import { killAll, processTree } from "../../support/processes/process_tree.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import type { Step } from "./stopping_server.ts";
import { bundleOf, firstApp, secondApp, startDeployWorld } from "./support.ts";

const VERSION = "/versions/[0-9a-f]{32}$";
const RECORD = "/deployed\\.json$";

/** Every other app has another schema; a number makes each version unique. */
function app(round: number): Record<string, string> {
  return {
    ...(round % 2 === 0 ? firstApp : secondApp),
    "functions/round.ts": `
      import { untypedQuery } from "syncline/server";
      export const round = untypedQuery({ handler: () => ${round} });`,
  };
}

class SteppedServer implements AsyncDisposable {
  readonly #child: Child;
  readonly #url: string;
  readonly #admin: string;

  private constructor(child: Child, { url, admin }: { readonly url: string; readonly admin: string }) {
    this.#child = child;
    this.#url = url;
    this.#admin = admin;
  }

  static async start(
    { dataDir, stepFile, admin }: {
      readonly dataDir: string;
      readonly stepFile: string;
      readonly admin: string;
    },
  ): Promise<SteppedServer> {
    const child = new Child({
      args: [
        ...["run", "--quiet", "--no-prompt", "-P=serve"],
        ...["--preload", "tests/ops/deploy/stopping_server.ts", "main.ts", "--port", "0", "--data", dataDir],
      ],
      env: { ...runtimeEnvironment, SYNCLINE_TEST_STEP_FILE: stepFile },
    });
    try {
      const [, url = ""] = await child.line(/(http:\/\/[\w.]+:\d+)\//);
      return new SteppedServer(child, { url, admin });
    } catch (error) {
      await child.kill();
      throw error;
    }
  }

  stands(): Promise<unknown> {
    return this.#child.line(/^blocked at the step$/);
  }

  async kill(): Promise<void> {
    await killAll(await processTree(this.#child.pid));
    await this.#child.kill();
  }

  async call(kind: "query" | "mutation", path: string, args = {}): Promise<unknown> {
    const response = await fetch(`${this.#url}/api/${kind}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ path, args }),
    });
    const body = await response.json();
    assert.equal(body.status, "success", `${path}: ${body.errorMessage}`);
    return body.value;
  }

  // deno-lint-ignore no-explicit-any -- answers of many shapes
  async admin(method: string, path: string, body?: Uint8Array<ArrayBuffer>): Promise<any> {
    const response = await fetch(`${this.#url}/api/admin${path}`, {
      method,
      ...(body && { body }),
      headers: { Authorization: `Bearer ${this.#admin}` },
    });
    return { ...await response.json(), status: response.status };
  }

  async deploy(round: number): Promise<{ readonly status: number; readonly errorMessage?: string }> {
    return await this.admin("PUT", "/functions", (await bundleOf(app(round))).bytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop();
  }
}

/** Returns the served round, after checking that everything belongs to it. */
async function servedWhole(server: SteppedServer, dataDir: string): Promise<number> {
  const round = Number(await server.call("query", "round:round"));
  assert.equal(await server.call("query", "notes:version"), round % 2 === 0 ? "one" : "two");
  await server.call("query", round % 2 === 0 ? "notes:gone" : "notes:fresh");
  const notes = await server.call("query", "notes:list") as unknown[];
  assert.equal(notes.length, 1, "documents are as they were");
  const { versions } = await server.admin("GET", "/functions/versions");
  const current = versions.filter((version: { current: boolean }) => version.current);
  assert.equal(current.length, 1);
  const deployed = JSON.parse(await Deno.readTextFile(join(dataDir, "deployed.json")));
  assert.equal(deployed.current, current[0].hash);
  const left = [];
  for (const folder of [".", "versions", "incoming"]) {
    for await (const { name } of Deno.readDir(join(dataDir, folder))) {
      if (/^\.(new|old)-|^deploy-|^\.deployed/.test(name)) left.push(`${folder}/${name}`);
    }
  }
  assert.deepEqual(left, [], "nothing half done is left");
  return round;
}

Deno.test("a deploy interrupted at any step leaves the old or the new version intact", async (t) => {
  await using folder = new TempFolder();
  const dataDir = folder.at("data");
  // Readable by the server.
  const stepFile = folder.at("data", "step.json");
  await Deno.mkdir(dataDir);
  let admin: string;
  let round = 0;
  let next = 1;
  {
    await using world = await startDeployWorld({ config: { dataDir } });
    ({ admin } = world);
    const { status, body } = await world.admin_("PUT", "/functions", (await bundleOf(app(round))).bytes);
    assert.equal(status, 200, body.errorMessage);
    await world.call("mutation", "notes:add", { body: "stays" });
  }
  const start = () => SteppedServer.start({ dataDir, stepFile, admin });
  let server = await start();
  await using _server = { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  const arm = (step: Step) => Deno.writeTextFile(stepFile, JSON.stringify(step));
  const disarm = () => Deno.remove(stepFile);

  const kills: readonly (readonly [what: string, step: Step, served: "old" | "new"])[] = [
    ["when the bundle is there", { call: "mkdir", path: "/incoming/deploy-", then: "block before" }, "old"],
    [
      "before a version is written",
      { call: "mkdir", path: "/versions/\\.new-", then: "block before" },
      "old",
    ],
    ["before a version has its name", { call: "rename", path: VERSION, then: "block before" }, "old"],
    ["when a version has its name", { call: "rename", path: VERSION, then: "block after" }, "old"],
    // Nothing is written between the staged record and this step.
    ["before the record is put", { call: "rename", path: RECORD, then: "block before" }, "old"],
    ["when the record is put", { call: "rename", path: RECORD, then: "block after" }, "new"],
  ];
  for (const [what, step, served] of kills) {
    await t.step(`[DP14] killed ${what}, the ${served} version is served at the next start`, async () => {
      await arm(step);
      const stands = server.stands();
      const refused = assert.rejects(server.deploy(next));
      await stands;
      await server.kill();
      await refused;
      await disarm();
      server = await start();
      assert.equal(await servedWhole(server, dataDir), served === "old" ? round : next);
      if (served === "new") round = next;
      // A version served before is not written again.
      next++;
    });
  }

  const failures: readonly (readonly [what: string, step: Step, status: number])[] = [
    ["the disk is full for a version", { call: "mkdir", path: "/versions/\\.new-", then: "ENOSPC" }, 507],
    ["the disk is full for the record", { call: "writeTextFile", path: "/\\.deployed", then: "ENOSPC" }, 507],
    ["the record cannot be put", { call: "rename", path: RECORD, then: "EACCES" }, 500],
  ];
  for (const [what, step, status] of failures) {
    await t.step(
      `[DP14] after a failure ${what} the old version continues, and the next deploy is served`,
      async () => {
        await arm(step);
        const answer = await server.deploy(next);
        assert.equal(answer.status, status, answer.errorMessage);
        assert.equal(await servedWhole(server, dataDir), round);
        await disarm();
        assert.equal((await server.deploy(next)).status, 200);
        round = next++;
      },
    );
  }

  await t.step("[DP14] the version served then is served after a restart", async () => {
    await server[Symbol.asyncDispose]();
    server = await start();
    assert.equal(await servedWhole(server, dataDir), round);
  });
});
