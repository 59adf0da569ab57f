import assert from "node:assert/strict";
import { join } from "node:path";
import { deriveKeys, loadSecretKeys, SecretKeyError, secretKeyFile } from "../../mod/auth/secret_key.ts";
import { TempFolder } from "../support/temp_folder.ts";

async function withFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await using tempFolder = new TempFolder();
  const folder = tempFolder.path;
  await run(folder);
}

Deno.test("AT4 the secret key is created once with mode 0600 and read again afterwards", () =>
  withFolder(async (folder) => {
    const first = await loadSecretKeys(folder);
    const again = await loadSecretKeys(folder);
    assert.equal(first.created, true);
    assert.equal(again.created, false);
    assert.deepEqual(again.keys, first.keys);
    assert.equal(((await Deno.stat(join(folder, secretKeyFile))).mode ?? 0) & 0o777, 0o600);
    assert.deepEqual([...Deno.readDirSync(folder)].map((entry) => entry.name), [secretKeyFile]);
  }));

Deno.test("a secret key that others can read is restricted and reported", () =>
  withFolder(async (folder) => {
    const { keys } = await loadSecretKeys(folder);
    await Deno.chmod(join(folder, secretKeyFile), 0o644);
    const again = await loadSecretKeys(folder);
    assert.equal(again.wasReadableByOthers, true);
    assert.deepEqual(again.keys, keys);
    assert.equal(((await Deno.stat(join(folder, secretKeyFile))).mode ?? 0) & 0o777, 0o600);
  }));

Deno.test("a deleted secret key is replaced by a different one", () =>
  withFolder(async (folder) => {
    const { keys } = await loadSecretKeys(folder);
    await Deno.remove(join(folder, secretKeyFile));
    const replaced = await loadSecretKeys(folder);
    assert.equal(replaced.created, true);
    assert.notDeepEqual(replaced.keys.accessTokens, keys.accessTokens);
  }));

for (
  const [name, content] of [["empty", ""], ["short", "abc\n"], ["long", "A".repeat(44)], [
    "binary",
    "\x00".repeat(43),
  ]]
) {
  Deno.test(`a secret key file that is ${name} stops the start and is not changed`, () =>
    withFolder(async (folder) => {
      const path = join(folder, secretKeyFile);
      await Deno.writeTextFile(path, content ?? "", { mode: 0o600 });
      await assert.rejects(loadSecretKeys(folder), SecretKeyError);
      assert.equal(await Deno.readTextFile(path), content);
    }));
}

Deno.test("AT4 each use of the secret has its own key, and equal secrets have equal keys", () => {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const keys = Object.values(deriveKeys(secret)).map((key) => key.join());
  assert.equal(new Set(keys).size, 6);
  assert.deepEqual(deriveKeys(secret), deriveKeys(secret));
  assert.throws(() => deriveKeys(new Uint8Array(31)), RangeError);
});
