/** Parts of the programs that run in Node, which need no Node to be tried. */
import assert from "node:assert/strict";
import { writePack } from "../../mod/npm/build/server_pack.ts";
import { startOf } from "../../mod/npm/node/packages.ts";
import { refusedHere } from "../../mod/npm/node/platforms.ts";
import { findProject } from "../../mod/npm/node/project.ts";
import { renameWithRetries } from "../../mod/npm/node/rename.ts";
import { unpack } from "../../mod/npm/node/server_pack.ts";
import { syncToDisk } from "../../mod/npm/node/whole_folder.ts";
import { environmentSuggestions } from "../../mod/config/env_file.ts";
import { TempFolder } from "../support/temp_folder.ts";

Deno.test("NP10 a variable that resembles a server option gets a hint, one of the app does not", () => {
  const known = ["SYNCLINE_PORT", "SYNCLINE_PUBLIC_URL"];
  const names = ["SYNCLINE_PROT", "SYNCLINE_PORT", "syncline_public_url", "SYNCLINE_GITHUB_SECRET", "PORT"];
  assert.deepEqual(environmentSuggestions(names, known), [
    "Unknown variable SYNCLINE_PROT: did you mean SYNCLINE_PORT?",
    "Unknown variable syncline_public_url: did you mean SYNCLINE_PUBLIC_URL?",
  ]);
});

Deno.test("NP7 the project is the nearest folder with functions, or whose package.json names the package", async () => {
  await using folder = await TempFolder.with({
    "app/package.json": '{ "devDependencies": { "syncline": "*" } }',
    "app/src/deep/file.ts": "",
    "bare/functions/notes.ts": "",
    "other/package.json": "{}",
  });
  assert.equal(findProject(folder.at("app/src/deep")), folder.at("app"));
  assert.equal(findProject(folder.at("bare/functions")), folder.at("bare"));
  assert.equal(findProject(folder.at("other")), null);
});

Deno.test("NP14 the server is unpacked completely or not at all, even over the files of a killed start", async () => {
  const files = { "app/cli.ts": "run();\n", "app/deep/er/a.ts": "", "cache/npm/ä/b.js": "\n\n" };
  await using folder = await TempFolder.with(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`from/${name}`, text])),
  );
  const pack = folder.at("server.pack");
  const id = await writePack(folder.at("from"), pack);
  assert.equal(await writePack(folder.at("from"), pack), id);
  const target = folder.at("made/server");
  // One was left by a process that was killed, another is being written in another container.
  for (const name of ["old", "new"]) {
    await Deno.mkdir(`${target}.draft-${name}`, { recursive: true });
    await Deno.writeTextFile(`${target}.draft-${name}/half`, "");
  }
  const before = new Date(Date.now() - 2 * 86_400_000);
  await Deno.utime(`${target}.draft-old`, before, before);
  unpack(pack, { folder: target, id });
  for (const [name, text] of Object.entries(files)) {
    assert.equal(await Deno.readTextFile(`${target}/${name}`), text);
  }
  assert.deepEqual((await Array.fromAsync(Deno.readDir(target))).map(({ name }) => name).toSorted(), [
    "app",
    "cache",
  ]);
  // The next start finds it and reuses existing files.
  const made = (await Deno.stat(`${target}/app/cli.ts`)).ino;
  unpack(pack, { folder: target, id });
  assert.equal((await Deno.stat(`${target}/app/cli.ts`)).ino, made);
  assert.throws(() => unpack(pack, { folder: folder.at("made/other"), id: "another" }), /damaged: reinstall/);
  assert.deepEqual(
    (await Array.fromAsync(Deno.readDir(folder.at("made")))).map(({ name }) => name).toSorted(),
    [
      "server",
      "server.draft-new",
    ],
  );
  await Deno.writeTextFile(folder.at("from/app/cli.ts"), "run( );");
  assert.notEqual(await writePack(folder.at("from"), pack), id);
});

Deno.test("NP14 after a power failure a half server is created again; one that was synced to disk is not checked", async () => {
  const files = { "app/cli.ts": "run();\n", "app/deep/a.ts": "a" };
  await using folder = await TempFolder.with(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`from/${name}`, text])),
  );
  const pack = folder.at("server.pack");
  const id = await writePack(folder.at("from"), pack);
  const target = folder.at("made/server");
  unpack(pack, { folder: target, id });
  const broken = [
    () => Deno.truncate(`${target}/app/cli.ts`),
    () => Deno.writeTextFile(`${target}/app/deep/a.ts`, "\0"),
    () => Deno.remove(`${target}/app/deep`, { recursive: true }),
  ];
  for (const breakIt of broken) {
    await breakIt();
    unpack(pack, { folder: target, id });
    for (const [name, text] of Object.entries(files)) {
      assert.equal(await Deno.readTextFile(`${target}/${name}`), text);
    }
  }
  const names = () => [...Deno.readDirSync(folder.at("made"))].map(({ name }) => name).toSorted();
  assert.deepEqual(names(), ["server"]);
  // A command that ends soon leaves it to the next one.
  const ended = new AbortController();
  ended.abort();
  await syncToDisk(target, ended.signal);
  assert.deepEqual(names(), ["server"]);
  await syncToDisk(target, new AbortController().signal);
  assert.deepEqual(names(), ["server", "server.on-disk"]);
  await Deno.remove(pack);
  unpack(pack, { folder: target, id });
});

Deno.test("NP15 on Windows package managers are scripts, virus scanners lock folders, and manifests start with a byte order mark", async () => {
  assert.deepEqual(startOf("npm", ["install", "--no-audit"], "win32"), {
    command: "npm install --no-audit",
    args: [],
    shell: true,
  });
  assert.deepEqual(startOf("pnpm", ["install"], "darwin"), {
    command: "pnpm",
    args: ["install"],
    shell: false,
  });
  const paths = { from: "a", to: "b" };
  const failing = (times: number, code: string) => {
    let tries = 0;
    return {
      rename() {
        if (++tries <= times) throw Object.assign(new Error(code), { code });
      },
      tries: () => tries,
    };
  };
  const held = failing(2, "EPERM");
  renameWithRetries(paths, { platform: "win32", rename: held.rename });
  assert.equal(held.tries(), 3);
  for (
    const { platform, code } of [
      { platform: "linux", code: "EPERM" },
      { platform: "win32", code: "ENOENT" },
    ] as const
  ) {
    const refused = failing(1, code);
    assert.throws(() => renameWithRetries(paths, { platform, rename: refused.rename }), { code });
    assert.equal(refused.tries(), 1);
  }
  await using folder = await TempFolder.with({
    "app/package.json": '\uFEFF{ "dependencies": { "syncline": "*" } }',
  });
  assert.equal(findProject(folder.at("app")), folder.at("app"));
});

Deno.test("NP15 on Windows commands that need a server or its bundler say where it is available", () => {
  for (const command of ["dev", "serve", "demo", "backup", "deploy"]) {
    assert.match(
      refusedHere(command, "win32") ?? "",
      /^The server runs on Linux and macOS\. On Windows, use WSL[^\n]*$/,
    );
    assert.equal(refusedHere(command, "darwin"), null);
  }
  for (const command of ["rollback", "init", "--help"]) {
    assert.equal(refusedHere(command, "win32"), null);
  }
});
