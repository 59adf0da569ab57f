/** Sizes that keep the packages of the sync path understandable: fields of classes, members of two interfaces, drawn paths. */
import assert from "node:assert/strict";
import { readPage, repository } from "../docs/pages.ts";

/** Packages whose classes have a limit of fields. */
const PACKAGES = ["mod/sync", "mod/cluster", "mod/server", "mod/functions/host"];
const FIELDS_MAX = 15;
const HOST_MEMBERS_MAX = 25;
const BACKEND_MEMBERS_MAX = 10;
const PATH_FILES_MAX = 12;

/** The body of each class or interface of a formatted file, by its name. */
function bodies(source: string, kind: "class" | "interface"): Map<string, string> {
  const found = source.matchAll(
    new RegExp(`^(?:export )?(?:abstract )?${kind} (\\w+)[^]*?\\{\\n([^]*?)^\\}`, "gm"),
  );
  return new Map([...found].map(([, name = "", body = ""]) => [name, body]));
}

/** Names that are declared directly in a body, without its constructor. */
function members(body: string): Set<string> {
  const declared = body.matchAll(
    /^ {2}(?:(?:static|abstract|override|readonly|async|get|set) )*\*?(#?\w+|\[[\w.]+\])[?!]?(?:<[^\n]*?>)?[(:;,]|^ {2}(?:(?:static|override|readonly) )*(#?\w+) = /gm,
  );
  const names = [...declared].map(([, member, initialized]) => member ?? initialized ?? "");
  return new Set(names.filter((name) => name !== "constructor"));
}

/** Fields of a class: the members that are not methods or accessors. */
function fields(body: string): string[] {
  const declared = body.matchAll(/^ {2}(?:(?:static|override|readonly|declare) )*(#?\w+)[?!]?(?::|;| =)/gm);
  return [...declared].map(([, name = ""]) => name);
}

async function* sourceFiles(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${repository}/${folder}`)) {
    if (isDirectory) yield* sourceFiles(`${folder}/${name}`);
    else if (name.endsWith(".ts")) yield `${folder}/${name}`;
  }
}

Deno.test("no class of the sync path has more than 15 fields", async () => {
  const large: string[] = [];
  let classes = 0;
  for (const folder of PACKAGES) {
    for await (const file of sourceFiles(folder)) {
      for (const [name, body] of bodies(await readPage(file), "class")) {
        classes++;
        const count = fields(body).length;
        if (count > FIELDS_MAX) large.push(`${name} in ${file} has ${count} fields`);
      }
    }
  }
  assert.ok(classes > 80, `${classes} classes are checked`);
  assert.deepEqual(large, []);
});

Deno.test("the interfaces of the isolates and of a backend stay small", async () => {
  const host = bodies(await readPage("mod/functions/host/host.ts"), "class").get("IsolateHost") ?? "";
  const ofHost = [...members(host)].filter((name) => !name.startsWith("#"));
  assert.ok(ofHost.includes("mutate") && ofHost.length <= HOST_MEMBERS_MAX, ofHost.join());
  const backend = bodies(await readPage("mod/server/backend.ts"), "interface").get("Backend") ?? "";
  // Its disposal is inherited.
  const ofBackend = ["[Symbol.asyncDispose]", ...members(backend)];
  assert.ok(ofBackend.includes("respond") && ofBackend.length <= BACKEND_MEMBERS_MAX, ofBackend.join());
});

Deno.test("a mutation and a Transition pass at most 12 files of the main process", async () => {
  const map = await readPage("mod/ARCHITECTURE.md");
  for (const title of ["Path of a mutation", "Path of a Transition"]) {
    const [, drawing = ""] = new RegExp(`^## ${title}\n[^]*?\`\`\`text\n([^]*?)\`\`\``, "m").exec(map) ?? [];
    const files = new Set([...drawing.matchAll(/^(mod\/\S+\.ts)/gm)].map(([, file]) => file));
    assert.ok(files.size > 5 && files.size <= PATH_FILES_MAX, `${title}: ${files.size} files`);
  }
});

Deno.test("fields and members are counted", () => {
  const source = `export class Sample<Item extends object> implements Other {
  static readonly limit = 3;
  readonly #options: { readonly log: Log };
  /** A comment: it counts nothing. */
  #ended = Promise.withResolvers<void>();
  #work: (() => void) | null = null;
  slot = -1;

  constructor(options: Options) {
    this.#options = options;
  }

  get size(): number {
    return 1;
  }

  async run<Result>(work: () => Result): Promise<Result> {
    const value: Result = work();
    return value;
  }

  *[Symbol.iterator](): Generator<Item> {}

  start(
    name: string,
    { late = false }: Options,
  ): void {}
}

interface Small extends AsyncDisposable {
  readonly ts: number;
  standBy?(): void;
}
`;
  const sample = bodies(source, "class").get("Sample") ?? "";
  assert.deepEqual(fields(sample), ["limit", "#options", "#ended", "#work", "slot"]);
  assert.deepEqual(
    [...members(sample)].filter((name) => !name.startsWith("#")),
    ["limit", "slot", "size", "run", "[Symbol.iterator]", "start"],
  );
  assert.deepEqual([...members(bodies(source, "interface").get("Small") ?? "")], ["ts", "standBy"]);
});
