/** Actions on administrators that run in main, because they hash passwords: `_admin/administrators:<name>`. */
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import { adminMainAction, type MainAction } from "../../functions/main_actions.ts";
import type { AccountParts } from "../accounts.ts";
import { checkedPassword, normalizedPassword } from "../passwords.ts";
import { system } from "../system_calls.ts";
import type { AdminAccounts } from "./admin_accounts.ts";

const createArgs = z.strictObject({ email: z.string(), password: z.string() });
const passwordArgs = z.strictObject({ currentPassword: z.string(), newPassword: z.string() });

/** Rate limit key of calls over a socket; wrong passwords are also limited by account. */
const SOCKET_CLIENT = "socket";

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
  ]);
}

/** Sets the caller's password and ends their other sessions. Throws `invalid_credentials`. */
async function changeOwnPassword(
  { calls, limits, passwords }: AccountParts,
  args: z.output<typeof passwordArgs>,
  identity: Identity,
): Promise<null> {
  const newPassword = checkedPassword(args.newPassword);
  const { email, hash } = await calls.mutate(system.ownAdminCredential, {}, { identity });
  const correct = await limits.attempt(
    { account: `admin ${email}`, client: SOCKET_CLIENT },
    async () => await passwords.verify(normalizedPassword(args.currentPassword), hash) ? true : null,
  );
  if (correct === null) throw new ServiceError("invalid_credentials");
  const passwordHash = await passwords.hash(newPassword);
  const set = await calls.mutate(system.setOwnAdminPassword, { checkedHash: hash, passwordHash }, {
    identity,
  });
  if (!set) throw new ServiceError("invalid_credentials");
  return null;
}
