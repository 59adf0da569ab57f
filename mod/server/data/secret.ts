/** The secret key in the data folder. */
import { join } from "node:path";
import { type LoadedSecret, loadSecretKeys, SecretKeyError, secretKeyFile } from "../../auth/mod.ts";
import { writeDurably } from "../../kit/durable_files.ts";
import { StartError } from "../../config/start_error.ts";

/** Throws a `StartError` if the file does not contain a key. */
export async function loadSecret(dataDir: string): Promise<LoadedSecret> {
  try {
    return await loadSecretKeys(dataDir);
  } catch (error) {
    if (error instanceof SecretKeyError) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

/** Contents of the key file, which is created if missing. */
export async function secretText(dataDir: string): Promise<string> {
  await loadSecret(dataDir);
  return await Deno.readTextFile(join(dataDir, secretKeyFile));
}

/** Replaces the key with the one the cluster uses. */
export async function useSecretText(dataDir: string, text: string): Promise<void> {
  const path = join(dataDir, secretKeyFile);
  const known = await Deno.readTextFile(path).catch(() => null);
  if (known !== text) await writeDurably(path, text);
}
