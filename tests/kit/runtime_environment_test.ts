import assert from "node:assert/strict";
import { launcherScripts, singleFileHead } from "../../mod/build/self_extractor.ts";
import { limitedCommand } from "../../mod/kit/processes/helper_process.ts";
import { runtimeEnvironment } from "../../mod/kit/processes/program.ts";
import config from "../../deno.json" with { type: "json" };

const settings = Object.entries(runtimeEnvironment).map(([name, value]) => `${name}=${value}`);

Deno.test("every way to start the server sets the runtime environment", () => {
  const name = { id: "0", version: "1" };
  for (const setting of settings) {
    for (const task of [config.tasks.serve, config.tasks.dev]) {
      assert.ok(task.slice(0, task.indexOf("deno run")).split(" ").includes(setting), task);
    }
    for (const script of [singleFileHead(name), launcherScripts(name).start]) {
      assert.match(script, new RegExp(`^export .*\\b${setting}\\b`, "m"));
    }
  }
});

Deno.test("isolates are started with the runtime environment", () => {
  const { env } = limitedCommand(64, []);
  for (const [name, value] of Object.entries(runtimeEnvironment)) assert.equal(env[name], value);
});
