/** The current user: a guest with a chosen name, or a signed-in user. */
import { ownAccount } from "syncline/client";
import { Authenticated, Unauthenticated, useAuth, useQuery } from "syncline/react";
import type { Person } from "./api.ts";
import { Avatar } from "./avatar.tsx";

interface MeProps {
  readonly person: Person;
  readonly guestName: string;
  readonly onGuestName: (name: string) => void;
  readonly onSignIn: () => void;
}

export function Me({ person, guestName, onGuestName, onSignIn }: MeProps) {
  const { isAuthenticated, isLoading } = useAuth();
  return (
    <div className="me" data-loading={isLoading || undefined}>
      <Avatar name={person.name} />
      {isAuthenticated
        ? (
          <p>
            <span>Signed in</span>
            <strong>{person.name}</strong>
            <Address />
          </p>
        )
        : (
          <label>
            <span>Your name</span>
            <input
              maxLength={40}
              autoComplete="nickname"
              required
              value={guestName}
              onChange={(event) => onGuestName(event.target.value)}
            />
          </label>
        )}
      <Authenticated>
        <SignOut />
      </Authenticated>
      <Unauthenticated>
        <button type="button" className="quiet" onClick={onSignIn}>Sign in</button>
      </Unauthenticated>
    </div>
  );
}

/** The address of the signed-in user. Other users do not see it. */
function Address() {
  const email = useQuery(ownAccount)?.email;
  return email ? <span className="address" title={email}>{email}</span> : null;
}

function SignOut() {
  const { auth } = useAuth();
  return (
    // When the server cannot be reached the session ends there later; here it has ended.
    <button type="button" className="quiet" onClick={() => void auth.signOut().catch(() => {})}>
      Sign out
    </button>
  );
}
