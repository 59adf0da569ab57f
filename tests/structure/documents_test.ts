/** Tables, commands and links of the documentation match the code. */
import assert from "node:assert/strict";
import { dirname, join, normalize } from "node:path";
import { serviceErrors } from "../../mod/errors.ts";
import { optionsOf } from "../../mod/config/options.ts";
import { documentedApps, pages, readPage, repository, tableRows } from "../docs/pages.ts";

Deno.test("every option of serve is in one table of the options page", async () => {
  const documented = tableRows(await readPage("docs/options.md"), "Option").map(([flag]) => flag);
  const expected = optionsOf("serve").map(([, { flag, placeholder }]) =>
    `\`${flag}${placeholder === null ? "" : ` <${placeholder}>`}\``
  );
  assert.deepEqual(documented.toSorted(), expected.toSorted());
});

Deno.test("the table of error codes has every code of the service, with status, message, cause and fix", async () => {
  const rows = tableRows(await readPage("docs/errors.md"), "Code|Status");
  const expected = Object.entries(serviceErrors)
    .map(([code, [status, text]]) => [`\`${code}\``, String(status), text]);
  assert.deepEqual(rows.map((row) => row.slice(0, 3)), expected);
  assert.deepEqual(rows.filter(([, , , fix = ""]) => fix === ""), []);
});

Deno.test("the limits that are documented are those of the code", async () => {
  const rows = tableRows(await readPage("docs/limits.md"), "Subject|Limit");
  assert.ok(rows.length > 20);
  const limits = await allLimits();
  for (const [what = "", limit, constant = ""] of rows) {
    const [group = "", name = ""] = constant.replaceAll("`", "").split(".");
    const value = limits[group]?.[name];
    assert.ok(typeof value === "number", `${constant}, of "${what}", is a limit`);
    assert.equal(limit, limitText(name, value), `${constant}, of "${what}"`);
  }
});

/** By their group: limits of the product and of its packages. */
async function allLimits(): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> {
  const mod = new URL("../../mod/", import.meta.url);
  const files = [new URL("limits.ts", mod)];
  for await (const { name, isDirectory } of Deno.readDir(mod)) {
    // The client's are for another program.
    if (isDirectory && name !== "client") files.push(new URL(`${name}/limits.ts`, mod));
  }
  const found = await Promise.all(files.map(async (file) => {
    return await Deno.stat(file).then(() => true, () => false) ? await import(file.href) : {};
  }));
  return Object.assign({}, ...found);
}

const DURATIONS = [[86_400_000, "days"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"], [1, "ms"]] as const;
const SIZES = [[1024 * 1024, "MiB"], [1024, "KiB"], [1, "bytes"]] as const;
const TEXTS = [[1024 * 1024, "Mi characters"], [1024, "Ki characters"], [1, "characters"]] as const;

/** A limit in the largest unit that divides it, of the kind that its name implies. */
function limitText(name: string, value: number): string {
  const units = /Ms(Max|Min)?$/.test(name) ? DURATIONS : /bytes/i.test(name) ? SIZES : TEXTS;
  const isCount = units === TEXTS && !/chars/i.test(name);
  // Not one day but 24 h, and an hour is an hour.
  const [size, unit] =
    units.find(([size]) => value % size === 0 && value / size > (size > 3_600_000 ? 1 : 0)) ?? [1, ""];
  return isCount ? value.toLocaleString("en") : `${(value / size).toLocaleString("en")} ${unit}`;
}

Deno.test("the table of packages has every package of the import map and no other", async () => {
  const { imports } = JSON.parse(await readPage("deno.json")) as { imports: Record<string, string> };
  const used = Object.values(imports)
    .map((address) => address.match(/^npm:\/?(@[^/]+\/[^@/]+|[^@/]+)@/)?.[1])
    .filter((name) => name !== undefined);
  const named = tableRows(await readPage("docs/dependencies.md"), "Package")
    .map(([cell = ""]) => cell.replaceAll("`", ""))
    .filter((name) => !name.startsWith("node:"));
  assert.deepEqual(named.toSorted(), [...new Set(used)].toSorted());
});

Deno.test("the documented tasks exist in deno.json, and the pages name the version that CI installs", async () => {
  const { tasks } = JSON.parse(await readPage("deno.json")) as { tasks: Record<string, string> };
  const version = (await readPage(".ci/run")).match(/DENO_VERSION=([\d.]+)/)?.[1];
  for (const page of await pages()) {
    const text = await readPage(page);
    for (const [, task = ""] of text.matchAll(/deno(?:@[\d.]+)? task ([\w:]+)/g)) {
      assert.ok(task in tasks, `${page}: ${task}`);
    }
    for (const [, named] of text.matchAll(/deno@([\d.]+)/g)) assert.equal(named, version, page);
  }
});

Deno.test("no task and no document grants everything", async () => {
  const everything = /(?<![\w-])(?:-A|--allow-all)(?![\w-])/;
  for (const path of ["deno.json", ".ci/run", ...await pages()]) {
    assert.doesNotMatch(await readPage(path), everything, path);
  }
});

Deno.test("every link and path in a page exists, and the index lists every page of docs", async () => {
  const linked = new Set<string>();
  for (const page of await pages()) {
    const text = await readPage(page);
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)/g)) {
      const path = normalize(join(dirname(page), target));
      await assert.doesNotReject(Deno.stat(`${repository}/${path}`), `${page} links to ${target}`);
      if (page === "docs/README.md") linked.add(path);
    }
    const quoted = text.matchAll(/`((?:mod|docs|tests|bench|examples|dashboard)\/[\w./-]+)`/g);
    const drawn = text.matchAll(/^ *\(?(mod\/[\w./-]+\.ts)/gm);
    for (const [, path = ""] of [...quoted, ...drawn]) {
      // A folder that the server creates.
      if (path.startsWith("mod/.")) continue;
      // Guides name the tests of an app.
      if (page.startsWith("docs/") && page !== "docs/contract.md" && path.startsWith("tests/")) continue;
      await assert.doesNotReject(Deno.stat(`${repository}/${path}`), `${page} names ${path}`);
    }
  }
  const listed = (await pages()).filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  assert.deepEqual(listed.filter((page) => !linked.has(page)), []);
});

Deno.test("every file that a package's README names exists", async () => {
  const files = await Array.fromAsync(filesBelow("mod"));
  const texts = files.filter((file) => file.endsWith(".md"));
  assert.ok(texts.length > 10);
  for (const page of texts) {
    for (const [, name = ""] of (await readPage(page)).matchAll(/`([\w./-]+\.tsx?)`/g)) {
      const places = name.includes("/")
        ? [`${dirname(page)}/${name}`, `mod/${name}`, name].filter((place) => files.includes(place))
        : files.filter((file) => file.endsWith(`/${name}`));
      const isOfAnApp = ["schema.ts", "crons.ts", "http.ts", "_generated.ts"].includes(name);
      assert.ok(
        places.length > 0 || isOfAnApp || /^(main|cli)\.ts$|^(tests|bench)\//.test(name),
        `${page} names ${name}`,
      );
    }
  }
});

async function* filesBelow(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(`${repository}/${folder}`)) {
    if (isDirectory) yield* filesBelow(`${folder}/${name}`);
    else yield `${folder}/${name}`;
  }
}

Deno.test("every block of TypeScript is a file of an app that is checked", async () => {
  const sizes = Object.fromEntries([...await documentedApps()].map(([app, files]) => [app, files.size]));
  assert.ok((sizes["guide"] ?? 0) > 15 && sizes["readme"] === 3, JSON.stringify(sizes));
});

Deno.test("the README and the map are short enough to be read", async () => {
  for (const [page, linesMax] of [["README.md", 150], ["mod/ARCHITECTURE.md", 190]] as const) {
    assert.ok((await readPage(page)).split("\n").length <= linesMax, page);
  }
});
