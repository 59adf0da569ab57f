/** The page: a header with the state of the connection, and below it the list, or the form of users who are not signed in. */
import { Show } from "solid-js";
import { render } from "solid-js/web";
import { SynclineClient } from "syncline/client";
import { SynclineProvider, useAuth, useConnectionState } from "syncline/solid";
import { SignIn } from "./sign_in.tsx";
import { Tasks } from "./tasks.tsx";

const client = new SynclineClient(location.origin);

function App() {
  const user = useAuth();
  const connection = useConnectionState();
  const connectionText = () =>
    connection.isConnected
      ? ""
      : connection.hasEverConnected
      ? "Offline. Changes are sent later."
      : "Connecting…";
  return (
    <>
      <header>
        <h1>Tasks</h1>
        <Show when={connection.inflightMutations > 0}>
          <span class="saving">Saving…</span>
        </Show>
        <span class="offline" role="status">{connectionText()}</span>
        <Show when={user.isAuthenticated}>
          <button type="button" onClick={() => user.auth.signOut()}>Sign out</button>
        </Show>
      </header>
      <main>
        <Show when={user.isAuthenticated}>
          <Tasks />
        </Show>
        <Show when={user.status === "signedOut"}>
          <SignIn />
        </Show>
      </main>
    </>
  );
}

render(
  () => (
    <SynclineProvider client={client}>
      <App />
    </SynclineProvider>
  ),
  document.getElementById("root")!,
);
