/** The page: the sign-in form, or the board. */
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { Authenticated, SynclineProvider, Unauthenticated } from "syncline/react";
import { Board } from "./board.tsx";
import { ErrorBoundary } from "./error_boundary.tsx";
import { Connection, Header } from "./header.tsx";
import { SignIn } from "./sign_in.tsx";

const client = new SynclineClient(location.origin);

createRoot(document.getElementById("root")!).render(
  <SynclineProvider client={client}>
    <Connection />
    <Unauthenticated>
      <SignIn />
    </Unauthenticated>
    <Authenticated>
      <ErrorBoundary>
        <Header />
        <Board />
      </ErrorBoundary>
    </Authenticated>
  </SynclineProvider>,
);
