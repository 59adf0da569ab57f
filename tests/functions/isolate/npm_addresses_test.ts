/** npm addresses in import(): none returns the service's own instances, and changes are lost with the isolate. */
import assert from "node:assert/strict";
import { packagePaths } from "../../../mod/functions/host/process/isolate_import_map.ts";
import { Workspace } from "./support.ts";

const imports: Record<string, string> = JSON.parse(Deno.readTextFileSync("deno.json")).imports;

const app = {
  "a.js": `
    import { untypedMutation } from "syncline/server";
    // An import() in generated code is not one of the bundle.
    const load = new Function("address", "return import(address)");
    export const get = untypedMutation(async (ctx, { address }) => Object.keys(await load(address)).length);
    export const tried = untypedMutation(async (ctx, { address }) => {
      try { return Object.keys(await load(address)).length; } catch (error) { return error.message; }
    });
  `,
};

Deno.test("the server's packages are closed to app code under every spelling of their addresses", async () => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  const found: string[] = [];
  for (const [name, paths] of Object.entries(packagePaths)) {
    const address = imports[name]?.replace(/^npm:/, "");
    assert.ok(address !== undefined, `${name} is not a package of the server`);
    const folder = new URL(".", import.meta.resolve(name)).pathname;
    const root = folder.slice(0, folder.indexOf(`/${name}/`) + name.length + 2);
    const version = address.slice(address.lastIndexOf("@") + 1);
    const manifest = JSON.parse(Deno.readTextFileSync(`${root}${version}/package.json`));
    const exported = Object.keys(manifest.exports ?? {}).filter((path) =>
      path !== "." && !path.includes("*")
    );
    assert.deepEqual(exported.filter((path) => !paths.includes(path.slice(2))), [], `paths of ${name}`);
    for (const path of ["", "/", ...paths.map((path) => `/${path}`)]) {
      for (const begin of ["npm:", "npm:/", "npm://", "NPM:", " npm:", "npm:/./"]) {
        const { outcome, value } = await writer.mutate("a:tried", { address: `${begin}${address}${path}` });
        if (!outcome.ok || typeof value !== "string") found.push(`${begin}${address}${path}`);
      }
    }
  }
  assert.deepEqual(found, []);
  assert.equal(typeof (await writer.mutate("a:get", { address: "zod" })).value, "number");
});

Deno.test("an isolate that a call left unable to load modules ends when it is idle", async () => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  const data = { address: "data:text/javascript,export const one = 1" };
  assert.equal((await writer.mutate("a:get", data)).value, 1);
  const failed = await writer.mutate("a:get", { address: "npm:hono" });
  assert.match(
    failed.outcome.ok ? "" : failed.outcome.error.message,
    /cannot import an "npm:" or "jsr:" address/,
  );
  const { code, stderr } = await writer.ended();
  assert.equal(code, 1);
  assert.match(stderr, /unable to load anything new/);
});
