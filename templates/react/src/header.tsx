/** The title, the state of the connection and of unsent changes, and the sign-out button. */
import { useAuth, useConnectionState } from "syncline/react";

export function Header({ title }: { title: string }) {
  const { auth, isAuthenticated } = useAuth();
  const { isConnected, hasEverConnected, inflightMutations } = useConnectionState();
  return (
    <header>
      <h1>{title}</h1>
      {inflightMutations > 0 && <span className="saving">Saving…</span>}
      <span className="offline" role="status">
        {isConnected ? "" : hasEverConnected ? "Offline. Changes are sent later." : "Connecting…"}
      </span>
      {isAuthenticated && <button type="button" onClick={() => void auth.signOut()}>Sign out</button>}
    </header>
  );
}
