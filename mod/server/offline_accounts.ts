/** Accounts while no server runs: the same functions on the same database, without the app. */
import { type AccountService, createAccounts, loadSecretKeys } from "../auth/mod.ts";
import { IsolateHost } from "../functions/host/host.ts";
import type { Log } from "../kit/log.ts";
import { Hub, noAccounts } from "../sync/mod.ts";
import { StartError } from "./start_error.ts";

/** Disposing of it ends the isolates. */
export interface OfflineAccounts extends AsyncDisposable {
  readonly admins: AccountService["admins"];
}

/** Opens the accounts of a data folder whose lock the caller holds. Throws a `StartError` when that cannot be done. */
export async function openAccountsOffline(dataDir: string, log: Log): Promise<OfflineAccounts> {
  // Without the app's modules its tables stay as they are, and an app that is broken is no hindrance.
  const functionsDir = await Deno.makeTempDir();
  try {
    const host = await IsolateHost.start({
      dataDir,
      functionsDir,
      env: {},
      entry: new URL("./isolate_entry.ts", import.meta.url),
      log,
    }).catch((error) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new StartError(`Cannot open the database of "${dataDir}": ${reason}`, { cause: error });
    });
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
