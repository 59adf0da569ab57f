/** The package `syncline`, built and published to the registry of a test. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { projectDir } from "../../support/processes/child.ts";
import type { NodeMachine } from "./node_machine.ts";

/** Builds both packages and publishes `syncline`. */
export async function publishSyncline(machine: NodeMachine): Promise<void> {
  const built = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "build:npm"],
    cwd: projectDir,
    stdin: "null",
  }).output();
  assert.ok(built.success, new TextDecoder().decode(built.stderr));
  await machine.done(`npm publish --silent ${join(projectDir, "dist/npm/syncline")}`);
}
