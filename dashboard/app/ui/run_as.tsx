/** The run identity of a function: signed out, a user found by email or name, or the administrator. */
import { useId } from "react";
import { useQuery } from "syncline/react";
import { api, type RunAs } from "../server/api.ts";

export interface Caller {
  readonly kind: "guest" | "user" | "me";
  /** Email address or ID of the user. */
  readonly user: string;
}

export const signedOut: Caller = { kind: "guest", user: "" };

const OFFERED = 20;

export function RunAsField({ caller, onChange }: {
  readonly caller: Caller;
  readonly onChange: (caller: Caller) => void;
}) {
  const id = useId();
  const users = useUsers(caller);
  return (
    <div className="row">
      <label htmlFor={id}>Run as</label>
      <select
        id={id}
        className="input fit"
        value={caller.kind}
        onChange={(event) => onChange({ ...caller, kind: event.target.value as Caller["kind"] })}
      >
        <option value="guest">signed out</option>
        <option value="user">a user</option>
        <option value="me">me (administrator)</option>
      </select>
      {caller.kind === "user" && (
        <>
          <input
            className="input grow"
            aria-label="User"
            placeholder="Email, name or ID"
            list={`${id}-users`}
            value={caller.user}
            onChange={(event) => onChange({ ...caller, user: event.target.value })}
          />
          <datalist id={`${id}-users`}>
            {users.map(({ userId, email, name }) => (
              <option key={userId} value={email ?? userId}>{name ?? userId}</option>
            ))}
          </datalist>
        </>
      )}
    </div>
  );
}

function useUsers({ kind, user }: Caller) {
  const search = user.trim();
  const found = useQuery(
    api.users.list,
    kind !== "user" ? "skip" : {
      ...(search !== "" && { search }),
      paginationOpts: { numItems: OFFERED, cursor: null },
    },
  );
  return found?.page ?? [];
}

/** Returns the run identity. The input is an email address of a suggested user or a user ID. */
export function useRunAs(caller: Caller): RunAs {
  const users = useUsers(caller);
  const me = useQuery(api.administrators.me);
  if (caller.kind === "me") return me ? { adminId: me.adminId } : null;
  if (caller.kind === "guest" || caller.user.trim() === "") return null;
  const entered = caller.user.trim();
  return { userId: users.find(({ email }) => email === entered.toLowerCase())?.userId ?? entered };
}
