/** Access to accounts while no server runs. Uses the same functions and database, without the app. */
import { type AccountService, createAccounts, loadSecretKeys } from "../auth/mod.ts";
import type { Log } from "../kit/log.ts";
import { Hub, noAccounts } from "../sync/mod.ts";
import { startOfflineHost } from "../server/offline_host.ts";

/** Disposing it ends the isolates. */
export interface OfflineAccounts extends AsyncDisposable {
  readonly admins: AccountService["admins"];
}

/** Opens the accounts of a data folder whose lock the caller holds. Throws a `StartError` on failure. */
export async function openAccountsOffline(dataDir: string, log: Log): Promise<OfflineAccounts> {
  // An empty functions folder: the app's tables stay untouched, and a broken app does not matter.
  const functionsDir = await Deno.makeTempDir();
  try {
    const host = await startOfflineHost({ dataDir, functionsDir, log });
    const hub = new Hub({ host, authenticator: noAccounts, dev: false });
    const { keys } = await loadSecretKeys(dataDir);
    const accounts = await createAccounts({
      keys,
      port: { mutate: (call) => host.mutate(call), query: (call) => hub.query(call) },
      policy: { signups: false, magicLink: false, requireVerification: false },
      accessTokenMs: 0,
      redirectUrls: [],
      dev: false,
      publicUrl: () => "",
      mailer: null,
      templatesDir: null,
      appName: "",
      clientOf: () => "local",
      log,
    });
    return {
      admins: accounts.admins,
      async [Symbol.asyncDispose]() {
        await accounts[Symbol.asyncDispose]();
        await hub.shutdown();
        await host[Symbol.asyncDispose]();
        await Deno.remove(functionsDir);
      },
    };
  } catch (error) {
    await Deno.remove(functionsDir);
    throw error;
  }
}
