/** The committed dashboard build matches its sources. */
import assert from "node:assert/strict";
import { buildDashboard } from "../../dashboard/build/build.ts";

const stored = new URL("../../dashboard/public/built/", import.meta.url);
/** Compressed size of the scripts, styles and font of the first view. */
const FIRST_VIEW_BYTES_MAX = 250_000;

async function* pathsBelow(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, stored))) {
    if (isDirectory) yield* pathsBelow(`${folder}${name}/`);
    else yield `${folder}${name}`;
  }
}

// The esbuild service process exits asynchronously.
const options = { sanitizeOps: false, sanitizeResources: false };

Deno.test("the dashboard's built files are up to date: deno task build:dashboard", options, async () => {
  const built = await buildDashboard();
  const there: string[] = [];
  for await (const path of pathsBelow("./")) there.push(path.slice(2));
  assert.deepEqual(there.toSorted(), [...built.keys()].toSorted());
  for (const [path, text] of built) {
    const kept = await Deno.readTextFile(new URL(path, stored));
    // `equal` would print both files in full.
    assert.ok(kept === text, `dashboard/public/built/${path} does not match dashboard/app`);
    assert.ok(
      !/\/npm\/|registry\.|sourceMappingURL/.test(text),
      `${path} contains a path of the build machine`,
    );
  }
  const [, font] = /href="\.\/(inter-[^"]+)"/.exec(built.get("index.html") ?? "") ?? [];
  assert.ok(built.get("app.css")?.includes(`../${font}`));
  let bytes = (await Deno.stat(new URL(`../${font}`, stored))).size;
  for (const path of firstView(built)) bytes += await compressed(built.get(path) ?? "");
  assert.ok(bytes < FIRST_VIEW_BYTES_MAX, `${bytes} compressed bytes before the first view`);
});

/** The page, its script and styles, and its preloaded chunks. */
function firstView(built: ReadonlyMap<string, string>): ReadonlySet<string> {
  const page = built.get("index.html") ?? "";
  const named = [...page.matchAll(/(?:href|src)="\.\/built\/([^"]+)"/g)].map(([, path = ""]) => path);
  const found = new Set(["index.html", ...named]);
  assert.ok([...found].every((path) => built.has(path)), [...found].join(", "));
  assert.ok(
    [...found].some((path) => path.startsWith("chunks/overview-")),
    "the overview is preloaded",
  );
  for (const path of found) {
    const statics = (built.get(path) ?? "").matchAll(
      /(?:from|^import|;import)\s*"\.\/(?:chunks\/)?([^"]+)"/g,
    );
    for (const [, name = ""] of statics) {
      assert.ok(found.has(`chunks/${name}`), `${path} imports ${name}, which the page does not preload`);
    }
  }
  return found;
}

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength;
}
