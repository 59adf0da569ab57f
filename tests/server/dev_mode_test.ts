/** Edits with `--dev`: none is missed, and the reload precedes the check of types. */
import assert from "node:assert/strict";
import { runDevMode } from "../../mod/server/dev/dev_mode.ts";
import { FolderEdits } from "../../mod/server/dev/folder_edits.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { pause, until } from "../support/waiting.ts";

Deno.test("DV11 an edit ends the running check, is served, and then checked", async () => {
  await using folder = await TempFolder.with({ "notes.ts": "" });
  const edits = new FolderEdits(folder.path);
  const events: string[] = [];
  let checks = 0;
  const running = runDevMode({
    functionsDir: folder.path,
    edits,
    log: () => {},
    standBy: () => {},
    reload() {
      events.push("reload");
      return Promise.resolve({ ok: true });
    },
    checkTypes(_folder, signal) {
      const name = `check ${++checks}`;
      events.push(name);
      const { promise, resolve } = Promise.withResolvers<null>();
      signal.addEventListener("abort", () => {
        events.push(`${name} ends`);
        resolve(null);
      });
      return promise;
    },
  });
  await until(() => checks === 1);
  await Deno.writeTextFile(folder.at("notes.ts"), "export {};");
  await until(() => checks >= 2);
  assert.deepEqual(events.slice(0, 4), ["check 1", "check 1 ends", "reload", "check 2"]);
  edits[Symbol.dispose]();
  await running;
  assert.match(events.at(-1) ?? "", /ends$/);
});

Deno.test("edits before dev mode starts and during a reload are served", async () => {
  await using folder = await TempFolder.with({ "notes.ts": "" });
  const edits = new FolderEdits(folder.path);
  await Deno.writeTextFile(folder.at("notes.ts"), "export {};");
  const reloads = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let started = 0;
  const running = runDevMode({
    functionsDir: folder.path,
    edits,
    log: () => {},
    standBy: () => {},
    async reload() {
      await reloads[started++]?.promise;
      return { ok: true };
    },
    checkTypes: () => Promise.resolve(null),
  });
  await until(() => started === 1);
  await Deno.writeTextFile(folder.at("notes.ts"), "export const edited = 1;");
  // The watch reports the edit in the meantime.
  await pause(100);
  assert.equal(started, 1);
  reloads[0]?.resolve();
  await until(() => started === 2);
  reloads[1]?.resolve();
  edits[Symbol.dispose]();
  await running;
});
