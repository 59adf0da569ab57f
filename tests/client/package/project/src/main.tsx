import { type ReactElement, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { SynclineProvider, useConnectionState, useMutation, useQuery } from "syncline/react";
import { api } from "../functions/api.ts";

function Notes(): ReactElement {
  const notes = useQuery(api.notes.list, {});
  const add = useMutation(api.notes.add);
  const { transport } = useConnectionState();
  return (
    <main>
      <p role="status">{transport ?? "offline"}</p>
      <button type="button" onClick={() => void add({ text: `note ${notes?.length ?? 0}` })}>Add</button>
      <ul>{notes?.map((note) => <li key={note._id}>{note.text}</li>)}</ul>
    </main>
  );
}

const root = document.querySelector("#root");
if (root === null) throw new Error("The page has no root");
const client = new SynclineClient(location.origin);
createRoot(root).render(
  <StrictMode>
    <SynclineProvider client={client}>
      <Notes />
    </SynclineProvider>
  </StrictMode>,
);
