/** Folders that are closed to app code stay closed however their address is spelled. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Workspace } from "./support.ts";

const own = fileURLToPath(new URL("../../../mod/functions/isolate/runs/call.ts", import.meta.url));
const cached = fileURLToPath(import.meta.resolve("zod"));
const croner = fileURLToPath(import.meta.resolve("croner"));

/** A letter of a path as a percent-encoding: the n-th after the last slash but `back`. */
function encoded(path: string, at: number): string {
  const code = path.charCodeAt(at).toString(16);
  return `${path.slice(0, at)}%${code}${path.slice(at + 1)}`;
}

/** Every letter of a path once in another spelling, and all of them. */
function spellings(path: string): string[] {
  const letters = [...path].flatMap((char, at) => /[a-z]/i.test(char) ? [at] : []);
  const all = [...path].map((char) => /[a-z]/i.test(char) ? `%${char.charCodeAt(0).toString(16)}` : char)
    .join("");
  return [
    ...letters.map((at) => encoded(path, at)),
    all,
    all.replaceAll(/%([0-9a-f]{2})/g, (hex) => hex.toUpperCase()),
  ]
    .map((spelled) => `file://${spelled}`);
}

for (const role of ["writer", "runner"] as const) {
  Deno.test(`a ${role} imports no file of the server or of the runtime's cache by another spelling of its address`, async () => {
    const urls = [own, cached, croner].flatMap(spellings);
    await using workspace = new Workspace({
      "a.js": `import { untypedAction, untypedMutation } from "syncline/server";
        const found = [];
        for (const url of ${JSON.stringify(urls)}) { try { await import(url); found.push(url); } catch {} }
        export const writer = untypedMutation(() => found);
        export const runner = untypedAction(() => found);
        export const late = async () => {
          const found = [];
          for (const url of ${
        JSON.stringify(urls.slice(0, 40))
      }) { try { await import(url + "?late"); found.push(url); } catch {} }
          return found;
        };
        export const lateRunner = untypedAction(late); export const lateWriter = untypedMutation(late);`,
    });
    await using isolate = await workspace.start(role);
    assert.equal(isolate.booted?.type, "Ready", JSON.stringify(isolate.booted));
    const run = (name: string) => role === "writer" ? isolate.mutate(name) : isolate.act(name);
    assert.deepEqual((await run(`a:${role}`)).value, []);
    const late = await run(role === "writer" ? "a:lateWriter" : "a:lateRunner");
    assert.deepEqual(late.value, [], JSON.stringify(late.outcome));
  });
}
