/** The secret key of this server's data folder. */
import { type LoadedSecret, loadSecretKeys, SecretKeyError } from "../../auth/mod.ts";
import { StartError } from "../../config/start_error.ts";

/** Throws a `StartError` when the file is there and is no key. */
export async function loadSecret(dataDir: string): Promise<LoadedSecret> {
  try {
    return await loadSecretKeys(dataDir);
  } catch (error) {
    if (error instanceof SecretKeyError) throw new StartError(error.message, { cause: error });
    throw error;
  }
}
