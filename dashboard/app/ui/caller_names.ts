/** Names of callers: their email addresses. */
import { useEffect, useRef, useState } from "react";
import { useQuery } from "syncline/react";
import { queryOnce } from "../server/admin_session.ts";
import { api } from "../server/api.ts";

/** Below the server's limit. */
const ASKED_AT_ONCE = 100;

/** Reads the email addresses of callers. Returns a function with the address of each, or `null`. */
export async function callerEmails(
  callers: readonly (string | null)[],
): Promise<(caller: string | null) => string | null> {
  const emails = new Map<string, string>();
  const ids = userIdsOf(callers);
  for (let at = 0; at < ids.length; at += ASKED_AT_ONCE) {
    const found = await queryOnce(api.users.emails, { userIds: ids.slice(at, at + ASKED_AT_ONCE) });
    for (const [id, email] of Object.entries(found)) emails.set(`user:${id}`, email);
  }
  if (callers.some((caller) => caller?.startsWith("admin:"))) {
    for (const { adminId, email } of await queryOnce(api.administrators.list, {})) {
      emails.set(`admin:${adminId}`, email);
    }
  }
  return (caller) => emails.get(caller ?? "") ?? null;
}

function userIdsOf(callers: readonly (string | null)[]): readonly string[] {
  const ids = callers.flatMap((caller) => caller?.startsWith("user:") ? [caller.slice("user:".length)] : []);
  return [...new Set(ids)];
}

/** Returns a function that names a caller: by email address, otherwise as in the log. */
export function useCallerNames(callers: readonly (string | null)[]): (caller: string | null) => string {
  const administrators = useQuery(api.administrators.list) ?? [];
  const [users, setUsers] = useState<Readonly<Record<string, string>>>({});
  const asked = useRef(new Set<string>());
  useEffect(() => {
    const unknown = userIdsOf(callers).filter((id) => !asked.current.has(id));
    for (let at = 0; at < unknown.length; at += ASKED_AT_ONCE) {
      const userIds = unknown.slice(at, at + ASKED_AT_ONCE);
      for (const id of userIds) asked.current.add(id);
      queryOnce(api.users.emails, { userIds }).then(
        (found) => setUsers((before) => ({ ...before, ...found })),
        () => {
          for (const id of userIds) asked.current.delete(id);
        },
      );
    }
  });
  return (caller) => {
    if (caller === null) return "anonymous";
    const [kind, id = ""] = caller.split(":");
    const email = kind === "user" ? users[id] : administrators.find(({ adminId }) => adminId === id)?.email;
    return email ?? caller;
  };
}
