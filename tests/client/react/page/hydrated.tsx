/** A page that was rendered on a server: its component, and what happens to it in the browser. */
import { Profiler } from "react";
import { hydrateRoot } from "react-dom/client";
import { SynclineClient } from "syncline/client";
import { type Preloaded, SynclineProvider, useAuth, usePreloadedQuery, useQuery } from "syncline/react";
import { api } from "./api.ts";
import { pause, until } from "./support.tsx";

type List = Preloaded<typeof api.rows.all>;

/** Rendered on both sides. */
export function Rows({ list }: { list: List }) {
  const rows = usePreloadedQuery(list);
  const later = useQuery(api.rows.text, { list: "hydrated", rank: 1 });
  const { status } = useAuth();
  return (
    <main>
      <ul>{rows.map(({ _id, text }) => <li key={_id}>{text}</li>)}</ul>
      <p>{later ?? "loading"} {status}</p>
    </main>
  );
}

/** Hydrates a server's page and updates it when a row changes. */
export async function hydrated({ html, list }: { html: string; list: List }) {
  const place = document.body.appendChild(document.createElement("div"));
  place.innerHTML = html;
  const item = place.querySelector("li");
  const frames: string[] = [];
  const seen = () => frames.push(place.querySelector("ul")?.textContent ?? "nothing");
  new MutationObserver(seen).observe(place, { childList: true, characterData: true, subtree: true });
  const complaints: string[] = [];
  const client = new SynclineClient(location.origin);
  let commits = 0;
  const root = hydrateRoot(
    place,
    <SynclineProvider client={client}>
      <Profiler id="rows" onRender={() => commits++}>
        <Rows list={list} />
      </Profiler>
    </SynclineProvider>,
    { onRecoverableError: (error) => complaints.push(String(error)) },
  );
  await until(() => place.querySelector("p")?.textContent?.startsWith("loading") === false);
  await pause(100);
  const before = [...frames];
  const sameItem = place.querySelector("li") === item;
  await client.mutation(api.rows.put, { list: "hydrated", rank: 1, text: "changed" });
  await until(() => place.querySelector("li")?.textContent === "changed");
  root.unmount();
  place.remove();
  client.close();
  return { before: [...new Set(before)], sameItem, complaints, commits };
}
