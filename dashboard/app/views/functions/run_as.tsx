/** In whose name a function runs: nobody's, a user's who is looked for by address or name, or one's own. */
import { useId } from "react";
import { useQuery } from "syncline/react";
import { api, type RunAs } from "../../server/api.ts";

export interface Caller {
  readonly kind: "nobody" | "user" | "me";
  /** Address or id of a user. */
  readonly user: string;
}

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
        <option value="nobody">nobody</option>
        <option value="user">a user</option>
        <option value="me">me, an administrator</option>
      </select>
      {caller.kind === "user" && (
        <>
          <input
            className="input grow"
            aria-label="User"
            placeholder="Address, name or id"
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

/** Gives the identity to run in. What is entered is an address of one of the users found, or else an id. */
export function useRunAs(caller: Caller): RunAs {
  const users = useUsers(caller);
  const me = useQuery(api.administrators.me);
  if (caller.kind === "me") return me ? { adminId: me.adminId } : null;
  if (caller.kind === "nobody" || caller.user.trim() === "") return null;
  const entered = caller.user.trim();
  return { userId: users.find(({ email }) => email === entered.toLowerCase())?.userId ?? entered };
}
