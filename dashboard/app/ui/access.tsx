/**
 * The role of the signed-in administrator. Controls that need a higher role are disabled and explain why, in the words of the
 * server, which enforces the roles.
 */
import { createContext, type ReactNode, use } from "react";
import { useQuery } from "syncline/react";
import { type AdminRole, isAllowed, roleText } from "../../../mod/functions/admin_roles.ts";
import { api } from "../server/api.ts";

/** The rights of each role, in addition to those of the roles before it. */
export const ROLE_TEXTS: Readonly<Record<AdminRole, string>> = {
  viewer: "reads everything except secrets",
  editor: "also changes data, users and code",
  owner: "also manages administrators, secrets and restores",
};

/** `undefined` while the role is loading, and on the sign-in page. */
const RoleContext = createContext<AdminRole | undefined>(undefined);

export function RoleProvider({ children }: { readonly children: ReactNode }) {
  return <RoleContext value={useQuery(api.administrators.me)?.role}>{children}</RoleContext>;
}

export function useRole(): AdminRole | undefined {
  return use(RoleContext);
}

/** Returns why the administrator may not use a control that needs a role, or `undefined` if they may. */
export function useRefusal(needs: AdminRole | undefined): string | undefined {
  const role = useRole();
  return needs === undefined || role === undefined || isAllowed(role, needs) ? undefined : roleText(needs);
}
