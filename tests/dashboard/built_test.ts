/** The built dashboard in the repository is what its sources give. */
import assert from "node:assert/strict";
import { buildDashboard } from "../../dashboard/build/build.ts";

const stored = new URL("../../dashboard/public/built/", import.meta.url);
/** Before the first view: the page's own script, its styles, and the parts they load at once. */
const FIRST_VIEW_BYTES_MAX = 250_000;

async function* pathsBelow(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, stored))) {
    if (isDirectory) yield* pathsBelow(`${folder}${name}/`);
    else yield `${folder}${name}`;
  }
}

// The service behind esbuild ends a moment after it was told to.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the dashboard's built files are up to date: deno task build:dashboard", options, async () => {
  const built = await buildDashboard();
  const there: string[] = [];
  for await (const path of pathsBelow("./")) there.push(path.slice(2));
  assert.deepEqual(there.toSorted(), [...built.keys()].toSorted());
  for (const [path, text] of built) {
    const kept = await Deno.readTextFile(new URL(path, stored));
    // Not with `equal`: it would print all of both.
    assert.ok(kept === text, `dashboard/public/built/${path} is not what dashboard/app gives`);
    assert.ok(!/\/npm\/|registry\.|sourceMappingURL/.test(text), `${path} names where it was built`);
  }
  let bytes = 0;
  for (const path of firstView(built)) bytes += await compressed(built.get(path) ?? "");
  assert.ok(bytes < FIRST_VIEW_BYTES_MAX, `${bytes} compressed bytes before the first view`);
});

/** The page's script and styles, the overview, and what these import at once. */
function firstView(built: ReadonlyMap<string, string>): ReadonlySet<string> {
  const overview = [...built.keys()].find((path) => path.startsWith("chunks/overview-")) ?? "";
  const found = new Set(["app.css", "app.js", overview]);
  for (const path of found) {
    for (
      const [, name = ""] of (built.get(path) ?? "").matchAll(
        /(?:from|^import|;import)\s*"\.\/(?:chunks\/)?([^"]+)"/g,
      )
    ) {
      found.add(`chunks/${name}`);
    }
  }
  assert.ok([...found].every((path) => built.has(path)), [...found].join(", "));
  return found;
}

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength;
}
