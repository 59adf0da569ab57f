/** The page: a header with the state of the connection, and below it the list, or the forms of users who are not signed in. */
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { RequireSignIn } from "syncline/react/account-forms";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Header } from "./header.tsx";
import { Tasks } from "./tasks.tsx";

const client = new SynclineClient(location.origin);

createRoot(document.getElementById("root")!).render(
  <SynclineProvider client={client}>
    <Header title="Tasks" />
    <main>
      <RequireSignIn className="card">
        <ErrorBoundary>
          <Tasks />
        </ErrorBoundary>
      </RequireSignIn>
    </main>
  </SynclineProvider>,
);
