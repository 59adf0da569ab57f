/** The commands `admin ...`, over the local socket or directly in the database: an operator can always regain access. */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import {
  type AccountService,
  type AdminAnswer,
  type AdminCommand,
  adminSocketFile,
  createAccounts,
  loadSecretKeys,
  runAdminCommand,
  sendAdminCommand,
} from "../auth/mod.ts";
import type { OptionValues } from "../config/options.ts";
import { StartError } from "../config/start_error.ts";
import { helpFields } from "../explained.ts";
import type { Log } from "../kit/log.ts";
import { DataLock, DataLockedError } from "../server/data/data_lock.ts";
import { checkNoStagedRestore } from "../server/data/data_restore.ts";
import { startOfflineHost } from "../server/offline_host.ts";
import { Hub, noAccounts } from "../sync/mod.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";

/** Disposing it ends the isolates. */
export interface OfflineAccounts extends AsyncDisposable {
  readonly admins: AccountService["admins"];
}

/** Opens the accounts of a data folder whose lock the caller holds. Throws a `StartError` on failure. */
async function openAccountsOffline(dataDir: string, log: Log): Promise<OfflineAccounts> {
  // An empty functions folder: the app's tables stay untouched, and a broken app does not matter.
  const functionsDir = await Deno.makeTempDir();
  try {
    const host = await startOfflineHost({ dataDir, functionsDir, log });
    const hub = new Hub({ host, authenticator: noAccounts, dev: false });
    const { keys } = await loadSecretKeys(dataDir);
    const accounts = await createAccounts({
      keys,
      port: { mutate: (call) => host.mutate(call), query: (call) => hub.query(call) },
      policy: {
        signups: false,
        magicLink: false,
        totp: false,
        passkeys: false,
        deviceMail: false,
        userKeys: [],
        anonymous: false,
        anonymousUserMs: 0,
        requireVerification: false,
      },
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

const EMAIL = { name: "email", description: "Email address of the account" };
const PASSWORD_BYTES_MAX = 4096;

export const adminCommands: readonly CommandSpec[] = [
  {
    name: "admin create",
    description: "Create an administrator; prints a generated password unless one is provided",
    argument: EMAIL,
    run: (options, email) => withPassword(options, (password) => ({ command: "create", email, password })),
  },
  {
    name: "admin list",
    description: "List the administrators",
    run: (options) => run(options, { command: "list" }, null),
  },
  {
    name: "admin reset-password",
    description: "Set a new password for an administrator and end their sessions",
    argument: EMAIL,
    run: (options, email) =>
      withPassword(options, (password) => ({ command: "reset-password", email, password })),
  },
  {
    name: "admin revoke-sessions",
    description: "End all sessions of an administrator or user",
    argument: EMAIL,
    run: (options, email) => run(options, { command: "revoke-sessions", email }, null),
  },
  {
    name: "admin remove-factors",
    description: "Remove the second factors and passkeys of an administrator or user who has lost the device",
    argument: EMAIL,
    run: (options, email) => run(options, { command: "remove-factors", email }, null),
  },
];

/** Returns a random password (120 bits). */
export function generatedPassword(): string {
  return randomBytes(15).toString("base64url");
}

async function withPassword(
  options: OptionValues,
  make: (password: string) => AdminCommand,
): Promise<number> {
  if (options.passwordStdin) return await run(options, make(await readPassword()), null);
  const generated = generatedPassword();
  return await run(options, make(generated), generated);
}

/** Runs a command and prints its result. `generated` is the password to print after it was set. */
async function run({ data }: OptionValues, command: AdminCommand, generated: string | null): Promise<number> {
  const log = commandLog();
  try {
    const answer = await answerTo(command, { dataDir: data, log });
    const { text, ok } = describe(answer, { command, generated });
    await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
    return ok ? exitCodes.ok : exitCodes.failed;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

/** Takes the lock of the data folder and opens the database, or asks the server that holds the lock. */
async function answerTo(
  command: AdminCommand,
  { dataDir, log }: { readonly dataDir: string; readonly log: Log },
): Promise<AdminAnswer> {
  let lock: DataLock;
  try {
    await Deno.stat(dataDir);
    lock = await DataLock.acquire(dataDir, { by: "admin" });
  } catch (error) {
    if (error instanceof DataLockedError && error.byServer) return await askServer(dataDir, command);
    if (error instanceof Deno.errors.NotFound) {
      throw new StartError(
        `Data folder "${resolve(dataDir)}" does not exist: pass the server's data folder with --data`,
        { code: "data_folder", cause: error },
      );
    }
    throw error;
  }
  using _lock = lock;
  if (command.command !== "list") await checkNoStagedRestore(dataDir, "this change");
  await using accounts = await openAccountsOffline(dataDir, log);
  return await runAdminCommand(accounts.admins, command);
}

async function askServer(dataDir: string, command: AdminCommand): Promise<AdminAnswer> {
  try {
    return await sendAdminCommand(dataDir, command);
  } catch (error) {
    throw new StartError(
      `A server is using "${
        resolve(dataDir)
      }" but does not answer at ${adminSocketFile}: is it starting or stopping? Try again`,
      { cause: error },
    );
  }
}

function describe(
  answer: AdminAnswer,
  { command, generated }: { readonly command: AdminCommand; readonly generated: string | null },
): { readonly text: string; readonly ok: boolean } {
  const password = generated === null ? "" : `\nPassword: ${generated}`;
  const email = "email" in command ? command.email : "";
  switch (answer.kind) {
    case "created":
      return { text: `Created the administrator ${email}.${password}`, ok: true };
    case "ended": {
      const { ended, passkeys = 0 } = answer;
      if (ended === null) return { text: `No account has the address ${email}.`, ok: false };
      const done = command.command === "reset-password" ? "Set the password, ended" : "Ended";
      const left = passkeys === 0
        ? ""
        : `\n${passkeys} passkey${passkeys === 1 ? "" : "s"} still sign${passkeys === 1 ? "s" : ""} in. ` +
          `To remove the factors, run admin remove-factors ${email}.`;
      return {
        text: `${done} ${ended} session${ended === 1 ? "" : "s"} of ${email}.${left}${password}`,
        ok: true,
      };
    }
    case "factors":
      return answer.known
        ? { text: `Removed the second factors and passkeys of ${email}.`, ok: true }
        : { text: `No account has the address ${email}.`, ok: false };
    case "list":
      if (answer.admins.length === 0) return { text: "There are no administrators.", ok: true };
      return {
        text: answer.admins.map(({ email, createdAt, sessions }) =>
          `${email}  created ${new Date(createdAt).toISOString()}  sessions ${sessions}`
        ).join("\n"),
        ok: true,
      };
    case "refused":
      return { text: answer.message, ok: false };
    case "result":
      return { text: JSON.stringify(answer.value), ok: true };
    default:
      return answer satisfies never;
  }
}

/** Reads the first line of standard input. */
export async function readPassword(): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of Deno.stdin.readable) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\n") || text.length > PASSWORD_BYTES_MAX) break;
  }
  return text.replace(/\r?\n[^]*$/, "");
}
