/** The page: a header with the state of the connection, and below it the sign-in form or the list. */
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { Authenticated, SynclineProvider, Unauthenticated } from "syncline/react";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Header } from "./header.tsx";
import { SignIn } from "./sign_in.tsx";
import { Tasks } from "./tasks.tsx";

const client = new SynclineClient(location.origin);

createRoot(document.getElementById("root")!).render(
  <SynclineProvider client={client}>
    <Header title="Tasks" />
    <main>
      <Unauthenticated>
        <SignIn />
      </Unauthenticated>
      <Authenticated>
        <ErrorBoundary>
          <Tasks />
        </ErrorBoundary>
      </Authenticated>
    </main>
  </SynclineProvider>,
);
