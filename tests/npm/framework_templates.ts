/**
 * The templates for frameworks other than React, each installed from the packed package with Node alone, built and tested. The
 * suite checks their types and opens their pages: `deno task test:long frameworks` also runs their own builds and tests.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { BINDINGS } from "../../mod/client/build/package_files.ts";
import { projectDir } from "../support/processes/child.ts";
import { needs, npm } from "../support/services.ts";
import { NodeMachine } from "./support/node_machine.ts";
import { publishSyncline } from "./support/published.ts";
import { Registry } from "./support/registry.ts";

const CREATE = join(projectDir, "dist/npm/create-syncline/bin/create-syncline.mjs");

Deno.test(
  needs(npm, "NP16 the templates for other frameworks pass their own builds and tests"),
  async (t) => {
    await using registry = await Registry.start();
    await using machine = await NodeMachine.create(registry.npmrc);
    await publishSyncline(machine);
    for (const name of BINDINGS) {
      await t.step(name, async () => {
        await machine.done(`node ${CREATE} ${name} --template ${name}`);
        await machine.done("npm run build", { at: name });
        const { isFile } = await Deno.stat(machine.at(name, "dist/index.html"));
        assert.ok(isFile);
        assert.match((await machine.done("npm test", { at: name })).text, /Tests +1 passed/);
      });
    }
  },
);
