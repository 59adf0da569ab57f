/** Actions on administrators that run in main, because they hash passwords: `_admin/administrators:<name>`. */
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { adminRoles } from "../../functions/admin_roles.ts";
import type { Identity } from "../../functions/identity.ts";
import { adminMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { AccountParts } from "../accounts.ts";
import { checkPassword } from "../own_account.ts";
import { checkedPassword } from "../passwords.ts";
import { system } from "../system_calls.ts";
import type { AdminAccounts } from "./admin_accounts.ts";

const createArgs = z.strictObject({
  email: z.string(),
  password: z.string(),
  role: z.enum(adminRoles).default("owner"),
});
const passwordArgs = z.strictObject({ currentPassword: z.string(), newPassword: z.string() });

const confirmArgs = z.strictObject({ password: z.string() });
const adminArgs = z.strictObject({ adminId: z.string() });

export function administratorActions(
  parts: AccountParts,
  admins: AdminAccounts,
): ReadonlyMap<string, MainAction> {
  return new Map([
    [
      "_admin/administrators:create",
      adminMainAction(createArgs, async (account) => {
        await admins.create(account);
        return null;
      }),
    ],
    [
      "_admin/administrators:changePassword",
      adminMainAction(passwordArgs, (args, identity) => changeOwnPassword(parts, args, identity)),
    ],
    [
      "_admin/administrators:confirmPassword",
      adminMainAction(confirmArgs, ({ password }, identity) => confirmPassword(parts, password, identity)),
    ],
    [
      "_admin/administrators:removeFactors",
      adminMainAction(
        adminArgs,
        ({ adminId }, identity) =>
          parts.calls.mutate(system.removeFactorsOfAdmin, { adminId, now: parts.now() }, { identity }),
      ),
    ],
  ]);
}

/** Confirms the caller's password in the session, for changes that need it. Throws `invalid_credentials`. */
async function confirmPassword(parts: AccountParts, password: string, identity: Identity): Promise<null> {
  const { calls, now } = parts;
  const { email, hash } = await calls.mutate(system.ownAdminCredential, {}, { identity });
  await checkPassword(parts, { account: `admin ${email}`, password, hash });
  const confirmed = await calls.mutate(system.confirmAdminPassword, { checkedHash: hash, now: now() }, {
    identity,
  });
  if (!confirmed) throw new ServiceError("invalid_credentials");
  return null;
}

/** Sets the caller's password and ends their other sessions. Throws `invalid_credentials`. */
async function changeOwnPassword(
  parts: AccountParts,
  args: z.output<typeof passwordArgs>,
  identity: Identity,
): Promise<null> {
  const { calls, passwords } = parts;
  const newPassword = checkedPassword(args.newPassword);
  const { email, hash } = await calls.mutate(system.ownAdminCredential, {}, { identity });
  await checkPassword(parts, { account: `admin ${email}`, password: args.currentPassword, hash });
  const passwordHash = await passwords.hash(newPassword);
  const set = await calls.mutate(system.setOwnAdminPassword, { checkedHash: hash, passwordHash }, {
    identity,
  });
  if (!set) throw new ServiceError("invalid_credentials");
  return null;
}
