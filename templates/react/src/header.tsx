/** The title, the state of the connection and of unsent changes, and the account. */
import { Authenticated, useConnectionState } from "syncline/react";
import { Account } from "./account.tsx";

export function Header({ title }: { title: string }) {
  const { isConnected, hasEverConnected, inflightMutations } = useConnectionState();
  return (
    <header>
      <h1>{title}</h1>
      {inflightMutations > 0 && <span className="saving">Saving…</span>}
      <span className="offline" role="status">
        {isConnected ? "" : hasEverConnected ? "Offline. Changes are sent later." : "Connecting…"}
      </span>
      <Authenticated>
        <Account />
      </Authenticated>
    </header>
  );
}
