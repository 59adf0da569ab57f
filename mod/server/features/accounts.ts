/** Accounts as this server is configured: secret key, mail, client addresses. */
import type { Context } from "hono";
import {
  type AccountService,
  createAccounts,
  type LoadedSecret,
  printingMailer,
  secretKeyFile,
  smtpMailer,
  TemplateError,
} from "../../auth/mod.ts";
import type { BackendSurroundings } from "../backend.ts";
import type { ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";

export interface StartAccountsOptions extends Pick<BackendSurroundings, "log" | "url"> {
  readonly config: ServeConfig;
  readonly secret: LoadedSecret;
  /** Address of the client that sent a request. */
  readonly clientOf: (c: Context) => string;
  /** Whether nothing was ever written to the database. */
  readonly newDatabase: boolean;
  readonly port: Parameters<typeof createAccounts>[0]["port"];
  /** Told of sign-ins, refreshes and the like. */
  readonly onAnswer?: Parameters<typeof createAccounts>[0]["onAnswer"];
}

const KEY_REPLACED =
  `There was no ${secretKeyFile}, so a new one was made: everyone is signed out, signed URLs handed ` +
  "out before no longer work, and secrets in the settings have to be entered again. No account is lost";

const NO_MAIL =
  "There is no mail server (--smtp-url): no mail is sent, so sign-in by mail is not offered and passwords cannot be reset";

/** Throws a `StartError` when the mail server or a template cannot be used. */
export async function startAccounts(
  { config, secret, clientOf, log, url, newDatabase, port, onAnswer }: StartAccountsOptions,
): Promise<AccountService> {
  try {
    const { keys, created, wasReadableByOthers } = secret;
    if (created && !newDatabase) log("warn", KEY_REPLACED);
    if (wasReadableByOthers) {
      log("warn", `${secretKeyFile} could be read by other users of this machine; now it cannot`);
    }
    const { policy, accessTokenMs, redirectUrls, smtp, templatesDir, appName } = config.accounts;
    const publicUrl = config.publicUrl ?? url;
    if (smtp === null && !config.dev) log("info", NO_MAIL);
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
      clientOf,
      ...(onAnswer && { onAnswer }),
      log,
    });
  } catch (error) {
    if (error instanceof TemplateError || error instanceof TypeError) {
      throw new StartError(error.message, { cause: error });
    }
    throw error;
  }
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
}
