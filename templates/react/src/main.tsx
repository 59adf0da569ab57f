import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { Authenticated, SynclineProvider, Unauthenticated } from "syncline/react";
import { SignIn } from "./sign_in.tsx";
import { Tasks } from "./tasks.tsx";

const client = new SynclineClient(location.origin);

createRoot(document.getElementById("root")!).render(
  <SynclineProvider client={client}>
    <Unauthenticated>
      <SignIn />
    </Unauthenticated>
    <Authenticated>
      <Tasks />
    </Authenticated>
  </SynclineProvider>,
);
