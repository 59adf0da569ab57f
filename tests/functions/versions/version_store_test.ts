/** Versions in the data folder: their contents, rejected files, and the remains of interrupted ones. */
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import { historyOf, readDeployed, writeDeployed } from "../../../mod/functions/versions/deployed.ts";
import { hashOf, sumOf } from "../../../mod/functions/versions/manifest.ts";
import { type Version, VersionStore } from "../../../mod/functions/versions/version_store.ts";
import { packageLimits, versionLimits } from "../../../mod/functions/limits.ts";

/** A project with functions, packages and a data folder. */
class Project implements AsyncDisposable {
  readonly dir: string;
  readonly dataDir: string;
  readonly functionsDir: string;

  constructor(files: Record<string, string>, { data = "data" } = {}) {
    this.dir = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "syncline-versions-" }));
    this.dataDir = `${this.dir}/${data}`;
    this.functionsDir = `${this.dir}/functions`;
    Deno.mkdirSync(this.dataDir, { recursive: true });
    Deno.mkdirSync(this.functionsDir, { recursive: true });
    this.write(files);
  }

  write(files: Record<string, string>): void {
    for (const [name, text] of Object.entries(files)) {
      const path = `${this.dir}/${name}`;
      Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      Deno.writeTextFileSync(path, text);
    }
  }

  open(): Promise<VersionStore> {
    return VersionStore.open(this.dataDir);
  }

  async make(): Promise<Version> {
    return await (await this.open()).make(this);
  }

  /** Names in the folder of versions. */
  get names(): string[] {
    const names = [...Deno.readDirSync(`${this.dataDir}/versions`)].map(({ name }) => name);
    return names.sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.dir, { recursive: true });
  }
}

/** Names and contents of the sources in the source map of a bundle. */
async function sourcesOf({ bundle }: Version): Promise<Map<string, string | null>> {
  const code = await Deno.readTextFile(bundle);
  const { sources, sourcesContent } = JSON.parse(
    atob(code.slice(code.lastIndexOf("base64,") + 7).trim()),
  );
  return new Map(sources.map((name: string, at: number) => [name, sourcesContent[at]]));
}

/** Paths below a folder. */
function filesOf(folder: string, below = ""): string[] {
  return [...Deno.readDirSync(`${folder}${below}`)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesOf(folder, `${below}/${name}`) : [`${below}/${name}`]
  ).sort();
}

Deno.test("VE7 a version is one file with the modules of the functions folder and their imports", async () => {
  await using project = new Project({
    "functions/a.ts": `import "./_helper.ts"; import "p"; import { s } from "@own/s"; console.log(s);`,
    "functions/_helper.ts": `import text from "./text.md" with { type: "text" }; console.log(text);`,
    "functions/text.md": "text",
    "functions/nested/b.ts": "console.log('b');",
    "functions/.env": "SECRET=1",
    "functions/node_modules/q/index.js": "",
    "functions/data/data.db": "",
    "node_modules/p/package.json": `{"type":"module","main":"main.js"}`,
    "node_modules/p/main.js": `import "./used.js"; import data from "./data.json" with { type: "json" };
      console.log(data);`,
    "node_modules/p/used.js": "console.log('used');",
    "node_modules/p/data.json": "[1]",
    "node_modules/p/unused.js": "",
    "node_modules/p/readme.md": "",
    "node_modules/other/index.js": "",
    "packages/s/package.json": `{"type":"module","exports":"./s.ts"}`,
    "packages/s/s.ts": `export const s = 1;`,
    "node_modules/@own/.keep": "",
  }, { data: "functions/data" });
  Deno.symlinkSync("../../packages/s", `${project.dir}/node_modules/@own/s`);
  const version = await project.make();
  assert.deepEqual(filesOf(version.folder), ["/bundle.js"]);
  assert.equal(version.bundle, `${version.folder}/bundle.js`);
  assert.equal(version.functions, "functions");
  assert.equal(version.authorFolder, project.dir);
  const bundle = Deno.readTextFileSync(version.bundle);
  const [, encoded = ""] = /base64,(.*)/.exec(bundle) ?? [];
  assert.deepEqual(JSON.parse(atob(encoded)).sources.filter((source: string) => source !== "").sort(), [
    "app:///functions/_helper.ts",
    "app:///functions/a.ts",
    "app:///functions/nested/b.ts",
    "app:///functions/text.md",
    "app:///node_modules/p/data.json",
    "app:///node_modules/p/main.js",
    "app:///node_modules/p/used.js",
    "app:///packages/s/s.ts",
  ]);
  assert.doesNotMatch(bundle.slice(0, bundle.indexOf("base64,")), /SECRET|unused|\/tmp\//);
});

Deno.test("VE8 a link that leads out of the functions folder is refused by its name, one that no module imports is ignored", async () => {
  await using project = new Project({ "functions/a.ts": "export {};" });
  const made = await project.make();
  Deno.writeTextFileSync(`${project.dataDir}/secret.json`, `{"key":"secret"}`);
  Deno.symlinkSync("../data", `${project.functionsDir}/data`);
  Deno.symlinkSync("../data/secret.json", `${project.functionsDir}/key.json`);
  Deno.symlinkSync("nowhere", `${project.functionsDir}/dangling.ts`);
  assert.equal((await project.make()).hash, made.hash);
  for (const path of ["key.json", "data/secret.json"]) {
    project.write({ "functions/a.ts": `import key from "./${path}"; console.log(key);` });
    await assert.rejects(
      project.make(),
      new RegExp(
        `^VersionError: a\\.ts:1:17: .*/functions/${path} is a link to .*outside the functions folder`,
      ),
    );
  }
});

Deno.test("VE9 each version has its own copies of files", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const store = await project.open();
  const first = await store.make(project);
  // In place, like some editors.
  await Deno.writeTextFile(`${project.functionsDir}/a.ts`, "console.log('two');");
  const second = await store.make(project);
  assert.match(Deno.readTextFileSync(first.bundle), /"one"/);
  assert.match(Deno.readTextFileSync(second.bundle), /"two"/);
});

Deno.test("VE10 a version that was tampered with is made again from its source, and refused without it", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const { hash, bundle } = await project.make();
  Deno.removeSync(bundle);
  Deno.writeTextFileSync(bundle, "bad");
  await assert.rejects(
    (await project.open()).get(hash),
    /version \w+ in the data folder is damaged: bundle\.js has changed/,
  );
  assert.equal((await project.make()).hash, hash);
  assert.match(Deno.readTextFileSync(bundle), /"one"/);
  await assert.rejects((await project.open()).get("../.."), /There is no version/);
});

Deno.test("VE11 ten versions are kept, and those in use", async () => {
  await using project = new Project({});
  const store = await project.open();
  const other = await project.open();
  const made: Version[] = [];
  const make = async (n: number) => {
    project.write({ "functions/a.ts": `console.log(${n});` });
    const version = await store.make(project);
    made.push(version);
    await store.served(version);
    return version;
  };
  const first = await make(0);
  // As another process would.
  const held = await other.hold(first);
  for (let n = 1; n <= versionLimits.kept + 2; n++) await make(n);
  const listed = (await store.list()).map(({ hash }) => hash);
  const kept = made.slice(-versionLimits.kept).reverse().map(({ hash }) => hash);
  assert.deepEqual(listed, [...kept, first.hash]);
  held[Symbol.dispose]();
  await store.served(made.at(-1) ?? first);
  assert.deepEqual((await store.list()).map(({ hash }) => hash), kept);
  await assert.rejects(store.get(first.hash), /There is no version/);
  await assert.rejects(store.hold(first), /is no longer in the data folder/);
});

Deno.test("VE11 DP9 the version served at the start is kept, however many others are served later", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('deployed');" });
  const store = await project.open();
  const deployed = await store.make(project);
  await store.served(deployed);
  const deployment = { hash: deployed.hash, at: 1, by: "ada", functions: {} };
  await writeDeployed(project.dataDir, { current: deployed.hash, deployments: [deployment] });
  for (let n = 0; n <= versionLimits.kept; n++) {
    project.write({ "functions/a.ts": `console.log(${n});` });
    await store.served(await store.make(project));
  }
  assert.equal((await store.list()).length, versionLimits.kept + 1);
  assert.equal((await store.get(deployed.hash)).hash, deployed.hash);
});

Deno.test("VE12 several concurrent builds of a version get the same one", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const versions = await Promise.all(Array.from({ length: 8 }, () => project.make()));
  assert.equal(new Set(versions.map(({ hash }) => hash)).size, 1);
  assert.deepEqual(project.names, [versions[0]?.hash]);
});

/** A program that is killed when it has written half of a version. */
const killedWriter = (dataDir: string, functionsDir: string) => `
  import { VersionStore } from ${
  JSON.stringify(new URL("../../../mod/functions/versions/version_store.ts", import.meta.url).href)
};
  const { writeFileSync } = Deno;
  Deno.writeFileSync = (path, content, options) => {
    writeFileSync(path, content.subarray(0, 10), options);
    Deno.kill(Deno.pid, "SIGKILL");
  };
  const store = await VersionStore.open(${JSON.stringify(dataDir)});
  await store.make({ functionsDir: ${JSON.stringify(functionsDir)} });
`;

Deno.test("VE13 a process killed while it writes a version leaves no valid version, and its remains are removed", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const script = `${project.dir}/make.ts`;
  await Deno.writeTextFile(script, killedWriter(project.dataDir, project.functionsDir));
  const config = fileURLToPath(new URL("../../../deno.json", import.meta.url));
  const { signal, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--no-check", `--config=${config}`, "--allow-all", script],
  }).output();
  assert.equal(signal, "SIGKILL", new TextDecoder().decode(stderr));
  assert.match(project.names.join(), /^\.new-[0-9a-f]+$/);
  const version = await project.make();
  assert.deepEqual(project.names, [version.hash]);
});

Deno.test("VE14 files that change while a version is made are read again, a bounded number of times", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const store = await project.open();
  const { spawn } = Deno.Command.prototype;
  let runs = 0;
  const changing = (timesMax: number) => {
    runs = 0;
    Deno.Command.prototype.spawn = function () {
      if (++runs <= timesMax) project.write({ "functions/a.ts": `console.log('edit ${runs}');` });
      return Reflect.apply(spawn, this, []);
    };
  };
  try {
    changing(Infinity);
    await assert.rejects(store.make(project), /The app's files keep changing/);
    assert.equal(runs, versionLimits.triesMax);
    changing(1);
    const made = await store.make(project);
    assert.equal(runs, 2);
    assert.match(Deno.readTextFileSync(made.bundle), /"edit 1"/);
    assert.ok(project.names.includes(made.hash));
  } finally {
    Deno.Command.prototype.spawn = spawn;
  }
});

Deno.test("VE15 paths may have commas, spaces, percent signs and letters of any kind", async () => {
  const name = "functions/ä b,%41#?.ts";
  await using project = new Project({ [name]: "export const a = () => new Error('here').stack;" }, {
    data: "da,ta %20 é",
  });
  const version = await project.make();
  const [[modulePath, , load]] = (await import(pathToFileURL(version.bundle).href)).default;
  assert.equal(`functions/${modulePath}`, name);
  const stack = (await load()).a();
  assert.ok(stack.includes(`app:///${name}`), stack);
});

Deno.test("VE16 without disk space nothing remains of a new version, and the previous one can still be built and loaded", async () => {
  await using project = new Project({ "functions/a.ts": "console.log('one');" });
  const store = await project.open();
  const made = await store.make(project);
  project.write({ "functions/a.ts": "console.log('more');" });
  const { writeFileSync } = Deno;
  Deno.writeFileSync = () => {
    throw Object.assign(new Error("No space left on device (os error 28)"), { code: "ENOSPC" });
  };
  try {
    await assert.rejects(store.make(project), {
      name: "VersionError",
      message: "The disk is full: cannot write a version of the functions in the data folder",
    });
    assert.deepEqual(project.names, [made.hash]);
    project.write({ "functions/a.ts": "console.log('one');" });
    assert.equal((await store.make(project)).hash, made.hash);
    assert.equal((await (await project.open()).get(made.hash)).hash, made.hash);
  } finally {
    Deno.writeFileSync = writeFileSync;
  }
});

Deno.test("VE18 a version of sources, as servers made before, is bundled when it is loaded", async () => {
  await using project = new Project({});
  const stub = (path: string) =>
    `data:text/javascript,const m=globalThis[Symbol.for("syncline.commonJs")](${
      JSON.stringify(path)
    }),n=Object(m);`;
  const sources: Record<string, string> = {
    "functions/a.ts":
      `import p from "p"; import { q } from "q/sub";\n\nexport const a = () => [p, q, String(new Error("x").stack)];`,
    "node_modules/p/main.js": `exports.p = require("./part")+require("dep");`,
    "node_modules/p/part/index.js": `module.exports = "part";`,
    "node_modules/.store/dep.js": `module.exports = "dep";`,
    "node_modules/q/sub.mjs": `import { basename } from "#path"; export const q = basename("/a/b");`,
  };
  const content = {
    functions: "functions",
    files: Object.fromEntries(
      Object.entries(sources).map(([path, text]) => [path, sumOf(new TextEncoder().encode(text))]),
    ),
    links: {},
    code: {
      files: {},
      scopes: {
        "./functions": { "p": stub("node_modules/p/main.js"), "q/sub": "./node_modules/q/sub.mjs" },
        "./node_modules/q": {
          "#path": `data:text/javascript,export*from"node:path";export{default}from"node:path"`,
        },
      },
      table: {
        files: {
          "node_modules/p/main.js": {
            requires: {
              "./part": { file: "node_modules/p/part/index.js" },
              "dep": { file: "node_modules/.store/dep.js" },
            },
            imports: {},
          },
        },
        required: [],
        deferred: [],
        refusals: {},
      },
    },
  };
  const manifest = { ...content, hash: hashOf(content), madeAt: 0, madeFrom: project.dir };
  const folder = `data/versions/${manifest.hash}`;
  project.write({ [`${folder}/version.json`]: JSON.stringify(manifest) });
  for (const [path, text] of Object.entries(sources)) project.write({ [`${folder}/code/${path}`]: text });
  const version = await (await project.open()).get(manifest.hash);
  const made = Deno.readTextFileSync(version.bundle);
  Deno.chmodSync(version.bundle, 0o600);
  Deno.truncateSync(version.bundle, 100);
  assert.equal((await (await project.open()).get(manifest.hash)).bundle, version.bundle);
  assert.equal(Deno.readTextFileSync(version.bundle), made, "a damaged bundle is made again");
  const [[, , load]] = (await import(pathToFileURL(version.bundle).href)).default;
  const [p, q, stack] = (await load()).a();
  assert.deepEqual([p, q], [{ p: "partdep" }, "b"]);
  assert.ok(stack.includes("app:///functions/a.ts:3:"), stack);
  assert.deepEqual(filesOf(version.folder).filter((path) => !Object.hasOwn(sources, path.slice(1))), [
    "/syncline-bundle.js",
    "/syncline-bundle.js.sha256",
  ]);
  assert.deepEqual([...Deno.readDirSync(`${project.dir}/data/versions`)].map(({ name }) => name), [
    manifest.hash,
  ]);
});

Deno.test("a file of deployments of an earlier release has them as its history", async () => {
  await using project = new Project({});
  const [newer, older] = ["1", "2"].map((digit) => ({
    hash: digit.repeat(32),
    at: 5,
    by: "ci",
    functions: {},
  }));
  assert.ok(newer !== undefined && older !== undefined);
  await writeDeployed(project.dataDir, { current: newer.hash, deployments: [newer, older] });
  const read = await readDeployed(project.dataDir);
  assert.ok(read !== null);
  const served = ({ hash, at, by }: typeof newer) => ({ hash, at, by });
  assert.deepEqual(historyOf(read), [served(newer), served(older)]);
  const history = [{ ...served(older), message: "back" }];
  await writeDeployed(project.dataDir, { ...read, history });
  assert.deepEqual(historyOf(await readDeployed(project.dataDir) ?? read), history);
});

Deno.test("the source map of a bundle has the app's own sources, and none of packages", async () => {
  const own = `import { one } from "dep";\n/** Own. */\nexport const two: number = one + 1;\n`;
  await using project = new Project({
    "package.json": `{"dependencies":{"dep":"1.0.0"}}`,
    "functions/app.ts": own,
    "node_modules/dep/package.json": `{"name":"dep","version":"1.0.0","main":"index.js"}`,
    "node_modules/dep/index.js": "exports.one = 1;",
  });
  const sources = await sourcesOf(await project.make());
  assert.equal(sources.get("app:///functions/app.ts"), own);
  assert.equal(sources.get("app:///node_modules/dep/index.js"), null);
});

Deno.test("sources beyond the limit are left out of the source map", async () => {
  await using project = new Project({
    "functions/app.ts": `/*${" ".repeat(packageLimits.sourcesBytesMax)}*/ export const one = 1;`,
  });
  const sources = await sourcesOf(await project.make());
  assert.equal(sources.get("app:///functions/app.ts"), null);
});
