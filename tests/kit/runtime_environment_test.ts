import assert from "node:assert/strict";
import { launcherScripts, singleFileHead } from "../../mod/build/self_extractor.ts";
import { unitText } from "../../mod/cli/service_command.ts";
import { limitedCommand } from "../../mod/kit/processes/helper_process.ts";
import { runtimeEnvironment } from "../../mod/kit/processes/program.ts";
import config from "../../deno.json" with { type: "json" };

Deno.test("every way to start the server sets the runtime environment", async () => {
  const program = { id: "0", version: "1" };
  const unit = unitText({ kind: "clone", command: ["deno"] }, { publicUrl: null });
  const npm = await Deno.readTextFile(new URL("../../mod/npm/node/runtime.ts", import.meta.url));
  for (const [name, value] of Object.entries(runtimeEnvironment)) {
    const setting = `${name}=${value}`;
    for (const task of [config.tasks.serve, config.tasks.dev]) {
      assert.ok(task.slice(0, task.indexOf("deno run")).split(" ").includes(setting), task);
    }
    assert.match(unit, new RegExp(`^Environment=(.* )?${setting}( |$)`, "m"));
    // A value of the caller takes precedence.
    for (const script of [singleFileHead(program), launcherScripts(program).start]) {
      assert.ok(script.includes(` ${name}="\${${name}:-${value}}"`), script);
    }
    const index = npm.indexOf(`${name}: "${value}"`);
    assert.ok(index > 0 && index < npm.indexOf("...process.env"), name);
  }
});

Deno.test("isolates are started with the runtime environment", () => {
  const { env } = limitedCommand(64, []);
  for (const [name, value] of Object.entries(runtimeEnvironment)) assert.equal(env[name], value);
});
