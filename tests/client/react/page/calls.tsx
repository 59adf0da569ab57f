/** Scenarios of mutations, actions and optimistic updates. */
import { useEffect } from "react";
import type { OptimisticStore } from "syncline/client";
import { type Mutate, useAction, useMutation, useQuery } from "syncline/react";
import { api } from "./api.ts";
import { mount, pause, until } from "./support.tsx";

type Put = Mutate<typeof api.rows.put>;

function addAtOnce(
  store: OptimisticStore,
  { list, rank, text }: { list: string; rank: number; text: string },
) {
  const rows = store.getQuery(api.rows.all, { list });
  if (rows === undefined) return;
  const local = { _id: `local ${rank}` as never, _creationTime: 0, list, rank, text };
  store.setQuery(api.rows.all, { list }, [...rows, local]);
}

/** Every rendered list while rows were added optimistically, as ranks. Pending ones are in brackets. */
export async function optimistic({ count }: { count: number }) {
  const frames: string[] = [];
  let put: Put | null = null;
  const puts = new Set<unknown>();
  function Rows() {
    const rows = useQuery(api.rows.all, { list: "optimistic" });
    put = useMutation(api.rows.put).withOptimisticUpdate(addAtOnce);
    puts.add(put);
    const text = rows?.map(({ _id, rank }) => _id.startsWith("local") ? `(${rank})` : `${rank}`).join(" ");
    useEffect(() => {
      if (text !== undefined && text !== frames.at(-1)) frames.push(text);
    }, [text]);
    return <p>{text}</p>;
  }
  const { place, show, end } = mount(<Rows />);
  const domFrames: string[] = [];
  await until(() => frames.length > 0);
  new MutationObserver(() => domFrames.push(place.textContent ?? "")).observe(place, {
    childList: true,
    characterData: true,
    subtree: true,
  });
  const call = () => put as Put | null;
  const visible: boolean[] = [];
  const sent = Array.from({ length: count }, async (_, rank) => {
    await pause(rank * 3);
    await call()?.({ list: "optimistic", rank, text: "x" });
    // A mutation's promise resolves when its writes are visible.
    await pause(0);
    visible.push(` ${place.textContent} `.includes(` ${rank} `));
  });
  await Promise.all(sent);
  show(<Rows />);
  await pause(20);
  await end();
  return { frames, domFrames, visible, functions: puts.size };
}

/** A failing mutation reverts its optimistic update, and an action returns its result. */
export async function calls() {
  const texts: (string | undefined)[] = [];
  let put: Put | null = null;
  let shout: ((args: { text: string }) => Promise<string>) | null = null;
  function One() {
    const rows = useQuery(api.rows.all, { list: "calls" });
    put = useMutation(api.rows.put);
    shout = useAction(api.rows.shout);
    const text = rows?.map((row) => row.text).join(" ");
    useEffect(() => {
      if (text !== texts.at(-1)) texts.push(text);
    });
    return null;
  }
  const { end } = mount(<One />);
  await until(() => texts.at(-1) === "");
  const call = put as Put | null;
  let refusal = "";
  await call?.withOptimisticUpdate((store, { list, rank }) => {
    store.setQuery(api.rows.all, { list }, [{
      _id: "x" as never,
      _creationTime: 0,
      list,
      rank,
      text: "wrong",
    }]);
  })({ list: "calls", rank: "no number" as never, text: "x" }).catch((error: Error) => refusal = error.name);
  await pause(50);
  const shouted = await (shout as ((args: { text: string }) => Promise<string>) | null)?.({ text: "hello" });
  await end();
  return { texts, refusal, shouted };
}
