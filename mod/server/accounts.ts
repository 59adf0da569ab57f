/** Accounts as this server is configured: secret key, mail, client addresses. */
import type { Context } from "hono";
import {
  type AccountService,
  createAccounts,
  loadSecretKeys,
  printingMailer,
  SecretKeyError,
  secretKeyFile,
  smtpMailer,
  TemplateError,
} from "../auth/mod.ts";
import { ClientAddresses } from "../kit/client_address.ts";
import type { BackendSurroundings } from "./backend.ts";
import type { ServeConfig } from "./config.ts";
import { StartError } from "./start_error.ts";

export interface StartAccountsOptions extends BackendSurroundings {
  readonly config: ServeConfig;
  /** Whether nothing was ever written to the database. */
  readonly newDatabase: boolean;
  readonly port: Parameters<typeof createAccounts>[0]["port"];
}

const KEY_REPLACED =
  `There was no ${secretKeyFile}, so a new one was made: everyone is signed out, signed URLs handed ` +
  "out before no longer work, and secrets in the settings have to be entered again. No account is lost";

/** Throws a `StartError` when the secret key, the mail server or a template cannot be used. */
export async function startAccounts(
  { config, log, url, newDatabase, port }: StartAccountsOptions,
): Promise<AccountService> {
  try {
    const { keys, created, wasReadableByOthers } = await loadSecretKeys(config.dataDir);
    if (created && !newDatabase) log("warn", KEY_REPLACED);
    if (wasReadableByOthers) {
      log("warn", `${secretKeyFile} could be read by other users of this machine; now it cannot`);
    }
    const { policy, accessTokenMs, redirectUrls, smtp, templatesDir, appName } = config.accounts;
    const publicUrl = config.publicUrl ?? url;
    const proxies = new ClientAddresses(config.trustedProxies);
    return await createAccounts({
      keys,
      port,
      policy,
      accessTokenMs,
      redirectUrls,
      dev: config.dev,
      publicUrl: () => publicUrl,
      mailer: smtp !== null ? smtpMailer(smtp) : config.dev ? printingMailer(print) : null,
      templatesDir,
      appName: appName ?? new URL(publicUrl).host,
      clientOf: (c) => proxies.clientOf(peerAddress(c), c.req.header("x-forwarded-for") ?? null),
      log,
    });
  } catch (error) {
    const ofOperator = error instanceof SecretKeyError || error instanceof TemplateError ||
      error instanceof TypeError;
    if (ofOperator) throw new StartError(error.message, { cause: error });
    throw error;
  }
}

/** Address of the other end of a request's connection. Requests made by tests have none. */
function peerAddress(c: Context): string {
  const peer = (c.env as Partial<Deno.ServeHandlerInfo> | undefined)?.remoteAddr;
  return peer !== undefined && "hostname" in peer ? peer.hostname : "local";
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}
