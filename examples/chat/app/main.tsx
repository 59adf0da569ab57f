/** Starts the chat: one client for the page, and the app below it. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider } from "syncline/react";
import { Chat } from "./chat.tsx";
import { ErrorScreen } from "./error_screen.tsx";

const client = new SynclineClient(location.origin);
const place = document.getElementById("root");
if (place === null) throw new Error("The page has no element for the chat");

createRoot(place).render(
  <StrictMode>
    <ErrorScreen>
      <SynclineProvider client={client}>
        <Chat />
      </SynclineProvider>
    </ErrorScreen>
  </StrictMode>,
);
