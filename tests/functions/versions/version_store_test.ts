/** Versions in the data folder: their contents, rejected files, and the remains of interrupted ones. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { writeDeployed } from "../../../mod/functions/versions/deployed.ts";
import { hashOf } from "../../../mod/functions/versions/manifest.ts";
import { type Version, VersionError, VersionStore } from "../../../mod/functions/versions/version_store.ts";
import { versionLimits } from "../../../mod/functions/limits.ts";

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

Deno.test("VE7 links of a version that was made elsewhere lie below its own folders only", async () => {
  await using project = new Project({ "functions/a.ts": "" });
  const store = await project.open();
  const content = {
    functions: "functions",
    files: {},
    links: { "functions/d/a": "functions", "functions/d/a/d/a/x": "functions/auth_secret.key" },
    code: { files: {}, scopes: {}, table: { files: {}, required: [], deferred: [], refusals: {} } },
  };
  const manifest = { ...content, hash: hashOf(content), madeAt: 0, madeFrom: "/" };
  await assert.rejects(store.adopt(manifest, project.dir), VersionError);
  assert.deepEqual(project.names, []);
  const known = { ...content, links: { "functions/d/a": "functions", "functions/d/b": "functions/a" } };
  await store.adopt({ ...manifest, ...known, hash: hashOf(known) }, project.dir);
  assert.deepEqual(project.names, [hashOf(known)]);
});

/** Paths below a folder. */
function filesOf(folder: string, below = ""): string[] {
  return [...Deno.readDirSync(`${folder}${below}`)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesOf(folder, `${below}/${name}`) : [`${below}/${name}`]
  ).sort();
}

Deno.test("VE7 a version holds the functions folder, and of packages the files that the code leads to", async () => {
  await using project = new Project({
    "functions/a.ts": `import "./_helper.ts"; import "p"; import { s } from "@own/s";`,
    "functions/_helper.ts": `import text from "./text.md" with { type: "text" };`,
    "functions/text.md": "text",
    "functions/nested/b.ts": "",
    "functions/.env": "SECRET=1",
    "functions/node_modules/q/index.js": "",
    "functions/data/data.db": "",
    "node_modules/p/package.json": `{"type":"module","main":"main.js"}`,
    "node_modules/p/main.js": `import "./used.js"; import data from "./data.json" with { type: "json" };`,
    "node_modules/p/used.js": "",
    "node_modules/p/data.json": "{}",
    "node_modules/p/unused.js": "",
    "node_modules/p/readme.md": "",
    "node_modules/other/index.js": "",
    "packages/s/package.json": `{"type":"module","exports":"./s.ts"}`,
    "packages/s/s.ts": `export const s = 1;`,
    "node_modules/@own/.keep": "",
  }, { data: "functions/data" });
  Deno.symlinkSync("../../packages/s", `${project.dir}/node_modules/@own/s`);
  Deno.symlinkSync("nested/b.ts", `${project.functionsDir}/link.ts`);
  await Deno.writeFile(`${project.functionsDir}/film.mp4`, new Uint8Array(versionLimits.assetBytesMax + 1));
  const version = await project.make();
  assert.deepEqual(filesOf(version.folder), [
    "/functions/_helper.ts",
    "/functions/a.ts",
    "/functions/link.ts",
    "/functions/nested/b.ts",
    "/functions/text.md",
    "/node_modules/p/data.json",
    "/node_modules/p/main.js",
    "/node_modules/p/used.js",
    "/packages/s/s.ts",
  ]);
  assert.equal(version.functionsDir, `${version.folder}/functions`);
  assert.equal(version.authorFolder, project.dir);
  assert.equal(Deno.readLinkSync(`${version.functionsDir}/link.ts`), "nested/b.ts");
});

Deno.test("VE8 a link that leads out of the functions folder is refused by its name, one that comes later is not seen", async () => {
  await using project = new Project({ "functions/a.ts": "" });
  const made = await project.make();
  Deno.writeTextFileSync(`${project.dataDir}/auth_secret.key`, "secret");
  for (const [name, target] of [["key.ts", "../data/auth_secret.key"], ["all", "/"], ["up", ".."]] as const) {
    Deno.symlinkSync(target, `${project.functionsDir}/${name}`);
    await assert.rejects(
      project.make(),
      new RegExp(`/functions/${name} is a link to .*outside the functions folder`),
    );
    Deno.removeSync(`${project.functionsDir}/${name}`);
  }
  Deno.symlinkSync("nowhere", `${project.functionsDir}/dangling`);
  assert.equal((await project.make()).hash, made.hash);
  assert.deepEqual(filesOf(made.folder), ["/functions/a.ts"]);
});

Deno.test("VE9 files of a version are its own, and shared only with other versions", async () => {
  await using project = new Project({ "functions/a.ts": "one", "functions/b.ts": "same" });
  const store = await project.open();
  const first = await store.make(project);
  // In place, as some editors write.
  await Deno.writeTextFile(`${project.functionsDir}/a.ts`, "two");
  const second = await store.make(project);
  assert.equal(Deno.readTextFileSync(`${first.functionsDir}/a.ts`), "one");
  assert.equal(Deno.readTextFileSync(`${second.functionsDir}/a.ts`), "two");
  const inode = (path: string) => Deno.statSync(path).ino;
  assert.equal(inode(`${first.functionsDir}/b.ts`), inode(`${second.functionsDir}/b.ts`));
  assert.notEqual(inode(`${first.functionsDir}/b.ts`), inode(`${project.functionsDir}/b.ts`));
});

Deno.test("VE10 a version that was tampered with is made again from its source, and refused without it", async () => {
  await using project = new Project({ "functions/a.ts": "one" });
  const { hash, functionsDir } = await project.make();
  Deno.removeSync(`${functionsDir}/a.ts`);
  Deno.writeTextFileSync(`${functionsDir}/a.ts`, "bad");
  await assert.rejects(
    (await project.open()).get(hash),
    /version \w+ in the data folder is damaged: functions\/a\.ts has changed/,
  );
  assert.equal((await project.make()).hash, hash);
  assert.equal(Deno.readTextFileSync(`${functionsDir}/a.ts`), "one");
  await assert.rejects((await project.open()).get("../.."), /There is no version/);
});

Deno.test("VE11 ten versions are kept, and those in use", async () => {
  await using project = new Project({});
  const store = await project.open();
  const other = await project.open();
  const made: Version[] = [];
  const make = async (n: number) => {
    project.write({ "functions/a.ts": String(n) });
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

Deno.test("VE11 DP9 what a start serves is kept, however many others were served since", async () => {
  await using project = new Project({ "functions/a.ts": "deployed" });
  const store = await project.open();
  const deployed = await store.make(project);
  await store.served(deployed);
  const deployment = { hash: deployed.hash, at: 1, by: "ada", functions: {} };
  await writeDeployed(project.dataDir, { current: deployed.hash, deployments: [deployment] });
  for (let n = 0; n <= versionLimits.kept; n++) {
    project.write({ "functions/a.ts": String(n) });
    await store.served(await store.make(project));
  }
  assert.equal((await store.list()).length, versionLimits.kept + 1);
  assert.equal((await store.get(deployed.hash)).hash, deployed.hash);
});

Deno.test("VE12 several that make the same version at once get the same one", async () => {
  await using project = new Project({ "functions/a.ts": "one", "functions/b.ts": "two" });
  const versions = await Promise.all(Array.from({ length: 8 }, () => project.make()));
  assert.equal(new Set(versions.map(({ hash }) => hash)).size, 1);
  assert.deepEqual(project.names, [versions[0]?.hash]);
});

const MAKER = (dataDir: string, functionsDir: string) => `
  import { VersionStore } from ${
  JSON.stringify(new URL("../../../mod/functions/versions/version_store.ts", import.meta.url).href)
};
  const store = await VersionStore.open(${JSON.stringify(dataDir)});
  console.log("opened");
  await store.make({ functionsDir: ${JSON.stringify(functionsDir)} });
  console.log("made");
`;

/** Starts a process that makes a version; its standard output. */
async function startMaker(project: Project, functionsDir = project.functionsDir): Promise<Deno.ChildProcess> {
  const script = `${project.dir}/make.ts`;
  await Deno.writeTextFile(script, MAKER(project.dataDir, functionsDir));
  return new Deno.Command(Deno.execPath(), {
    args: [
      ...[
        "run",
        "--quiet",
        "--no-prompt",
        `--config=${fileURLToPath(new URL("../../../deno.json", import.meta.url))}`,
      ],
      ...["--allow-read", "--allow-write", script],
    ],
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

Deno.test("VE13 a process killed while it writes a version leaves nothing that counts, and what it left is removed", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 1_500 }, (_, n) => [`functions/m${n}.ts`, `${n}`.repeat(200)]),
  );
  await using project = new Project(files);
  const child = await startMaker(project);
  const errors = new Response(child.stderr).text();
  // Killed as soon as there is something half written.
  for (;;) {
    const begun = await Array.fromAsync(Deno.readDir(`${project.dataDir}/versions`)).catch(() => []);
    const writing = begun.find(({ name }) => name.startsWith(".new-"));
    const code = `${project.dataDir}/versions/${writing?.name}/code`;
    if (writing !== undefined && await Deno.stat(code).catch(() => null) !== null) break;
    assert.ok(!begun.some(({ name }) => /^[0-9a-f]{32}$/.test(name)), "it was faster than this test");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  child.kill("SIGKILL");
  await child.status;
  await child.stdout.cancel();
  await errors;
  assert.ok(project.names.every((name) => name.startsWith(".new-")), project.names.join());
  const version = await project.make();
  assert.deepEqual(project.names, [version.hash]);
  assert.equal(filesOf(version.folder).length, 1_500);
});

Deno.test("VE14 files that change while a version is made are read again, a bounded number of times", async () => {
  await using project = new Project({ "functions/a.ts": "one" });
  const store = await project.open();
  const { openSync, readFileSync } = Deno;
  const path = `${project.functionsDir}/a.ts`;
  let reads = 0;
  const changing = (timesMax: number) => {
    reads = 0;
    // A process that has it open keeps the old contents.
    const edit = () => {
      if (++reads > timesMax) return;
      Deno.writeTextFileSync(`${path}.new`, `edit ${reads}`);
      Deno.renameSync(`${path}.new`, path);
    };
    const afterwards = <Read extends (file: string | URL, ...rest: never[]) => unknown>(read: Read): Read =>
      ((file, ...rest) => {
        const given = read(file, ...rest);
        if (file === path) edit();
        return given;
      }) as Read;
    Deno.readFileSync = afterwards(readFileSync);
    Deno.openSync = afterwards(openSync);
  };
  try {
    changing(Infinity);
    await assert.rejects(store.make(project), /The app's files keep changing/);
    assert.equal(reads, 2 * versionLimits.triesMax);
    changing(1);
    const made = await store.make(project);
    assert.equal(Deno.readTextFileSync(`${made.functionsDir}/a.ts`), "edit 1");
    assert.deepEqual(project.names, [made.hash]);
  } finally {
    Object.assign(Deno, { openSync, readFileSync });
  }
});

Deno.test("VE15 paths may have commas, spaces, percent signs and letters of any kind", async () => {
  await using project = new Project({ "functions/ä b,%41.ts": "x" }, { data: "da,ta %20 é" });
  const version = await project.make();
  assert.deepEqual(filesOf(version.folder), ["/functions/ä b,%41.ts"]);
});

Deno.test("VE16 without room on the disk nothing is left of a new version, and the one before it can still be made and loaded", async () => {
  await using project = new Project({ "functions/a.ts": "one", "functions/b.ts": "two" });
  const store = await project.open();
  const made = await store.make(project);
  project.write({ "functions/a.ts": "more" });
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
    project.write({ "functions/a.ts": "one" });
    assert.equal((await store.make(project)).hash, made.hash);
    assert.equal((await (await project.open()).get(made.hash)).hash, made.hash);
  } finally {
    Deno.writeFileSync = writeFileSync;
  }
});
