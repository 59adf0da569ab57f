/** Administrator operations of the command line, as one request and one response. */
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { AdminAccounts } from "./admin_accounts.ts";
import type { AdminSummary } from "../isolate_functions/admins.ts";

const email = z.string();
const password = z.string();

export const adminCommandSchema = z.discriminatedUnion("command", [
  z.object({ command: z.literal("create"), email, password }),
  z.object({ command: z.literal("reset-password"), email, password }),
  z.object({ command: z.literal("list") }),
  z.object({ command: z.literal("revoke-sessions"), email }),
  /** A call of an administrator function. */
  z.object({
    command: z.literal("call"),
    path: z.string().startsWith("_admin/"),
    args: z.record(z.string(), z.unknown()),
  }),
]);

export type AdminCommand = z.infer<typeof adminCommandSchema>;

/** The response. `ended` is the number of ended sessions, `null` if the account does not exist. */
export type AdminAnswer =
  | { readonly kind: "created" }
  | { readonly kind: "list"; readonly admins: readonly AdminSummary[] }
  | { readonly kind: "ended"; readonly ended: number | null }
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "refused"; readonly message: string };

/** Runs a command. Expected errors become a response; other errors are thrown. */
export async function runAdminCommand(admins: AdminAccounts, command: AdminCommand): Promise<AdminAnswer> {
  try {
    switch (command.command) {
      case "create":
        await admins.create(command);
        return { kind: "created" };
      case "reset-password":
        return { kind: "ended", ended: await admins.resetPassword(command) };
      case "list":
        return { kind: "list", admins: await admins.list() };
      case "revoke-sessions":
        return { kind: "ended", ended: await admins.revokeSessions(command.email) };
      case "call":
        return { kind: "refused", message: "This command needs a running server" };
      default:
        return command satisfies never;
    }
  } catch (error) {
    if (error instanceof ServiceError) return { kind: "refused", message: error.message };
    throw error;
  }
}
