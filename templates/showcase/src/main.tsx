/** The page: a header, and below it the board, or the forms of users who are not signed in. */
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { RequireSignIn } from "syncline/react/account-forms";
import { Board } from "./board.tsx";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Connection, Header } from "./header.tsx";

const client = new SynclineClient(location.origin);

createRoot(document.getElementById("root")!).render(
  <SynclineProvider client={client}>
    <Connection />
    <ErrorBoundary>
      <Header />
      <main>
        <RequireSignIn className="card forms">
          <Board />
        </RequireSignIn>
      </main>
    </ErrorBoundary>
  </SynclineProvider>,
);
