/** The built dashboard in the repository is what its sources give. */
import assert from "node:assert/strict";
import { buildDashboard } from "../../dashboard/build/build.ts";

const stored = new URL("../../dashboard/public/built/", import.meta.url);
/** Before the first view. */
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

/** The page, its script and styles, and all that it tells the browser to fetch at once. */
function firstView(built: ReadonlyMap<string, string>): ReadonlySet<string> {
  const page = built.get("index.html") ?? "";
  const named = [...page.matchAll(/(?:href|src)="\.\/built\/([^"]+)"/g)].map(([, path = ""]) => path);
  const found = new Set(["index.html", ...named]);
  assert.ok([...found].every((path) => built.has(path)), [...found].join(", "));
  assert.ok(
    [...found].some((path) => path.startsWith("chunks/overview-")),
    "the overview is fetched at once",
  );
  for (const path of found) {
    const statics = (built.get(path) ?? "").matchAll(
      /(?:from|^import|;import)\s*"\.\/(?:chunks\/)?([^"]+)"/g,
    );
    for (const [, name = ""] of statics) {
      assert.ok(found.has(`chunks/${name}`), `${path} imports ${name}, which the page does not name`);
    }
  }
  return found;
}

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength;
}
