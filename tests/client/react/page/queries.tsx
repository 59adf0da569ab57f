/** Scenarios of queries: how often components render, messages to the server, errors, suspense. */
import { memo, type ReactNode, Suspense, useEffect, useState } from "react";
import { flushSync } from "react-dom";
import { useConnectionState, useQueries, useQuery, useSuspenseQuery } from "syncline/react";
import { api } from "./api.ts";
import { Boundary, mount, pause, until } from "./support.tsx";

/** A page of `count` hooks: the number of renders of each component, after a change of one row and after more. */
export async function counted({ count, change }: { count: number; change: number }) {
  const shown = new Array<number>(count).fill(0);
  const texts = new Array<string | null | undefined>(count).fill(undefined);
  let renderAll = () => {};
  const Cell = memo(function Cell({ rank }: { rank: number }) {
    const text = useQuery(api.rows.text, { list: "counted", rank });
    useEffect(() => {
      shown[rank] = (shown[rank] ?? 0) + 1;
    });
    texts[rank] = text;
    return <i>{text}</i>;
  });
  function All() {
    const [, setRound] = useState(0);
    renderAll = () => flushSync(() => setRound((round) => round + 1));
    return <>{Array.from({ length: count }, (_, rank) => <Cell key={rank} rank={rank} />)}</>;
  }
  const { client, wire, end } = mount(<All />);
  await until(() => texts.every((text) => text !== undefined));
  // Effects run after rendering.
  await pause(100);
  const addedAtFirst = wire.adds;
  shown.fill(0);
  await client.mutation(api.rows.put, { list: "counted", rank: change, text: "changed" });
  await until(() => texts[change] === "changed");
  await pause(50);
  const afterChange = shown.flatMap((times, rank) => times === 0 ? [] : [[rank, times]]);
  const startedAt = performance.now();
  renderAll();
  const renderAllMs = performance.now() - startedAt;
  await pause(50);
  await end();
  return { addedAtFirst, afterChange, adds: wire.adds, removes: wire.removes, renderAllMs };
}

/** Messages to the server from a component that is skipped, rendered again, given other arguments, unmounted and mounted again. */
export async function reported() {
  const seen: unknown[] = [];
  function One({ args }: { args: { list: string; rank: number } | "skip" }) {
    seen.push(useQuery(api.rows.text, args));
    return null;
  }
  const { wire, show: render, end } = mount(<One args="skip" />);
  /** The next step waits for a value that is rendered from now on. */
  const show = (node: ReactNode) => {
    seen.length = 0;
    render(node);
  };
  const steps: [what: string, adds: number, removes: number, seen: unknown][] = [];
  const step = async (what: string, expected: unknown) => {
    await until(() => seen.length > 0 && Object.is(seen.at(-1), expected));
    await pause(50);
    steps.push([what, wire.adds, wire.removes, seen.at(-1)]);
  };
  await pause(100);
  await step("skip", undefined);
  show(<One args={{ list: "reported", rank: 1 }} />);
  await step("asked", "one");
  show(<One args={{ rank: 1, list: "reported" }} />);
  await step("equal arguments", "one");
  show(<One args={{ list: "reported", rank: 2 }} />);
  await step("other arguments", "two");
  show(<One key="again" args={{ list: "reported", rank: 2 }} />);
  await step("another component, the same query", "two");
  show(null);
  await until(() => wire.removes === 2);
  await pause(50);
  steps.push(["unmounted", wire.adds, wire.removes, null]);
  show(<One args={{ list: "reported", rank: 2 }} />);
  await step("mounted again", "two");
  show(<One args="skip" />);
  await step("skipped again", undefined);
  await end();
  return { steps, live: wire.live.size };
}

/** A query that fails, recovers, and is tried again. */
export async function failing() {
  function One() {
    return <p>{useQuery(api.rows.text, { list: "failing", rank: 1 }) ?? "loading"}</p>;
  }
  const { client, place, end } = mount(
    <Boundary>
      <One />
    </Boundary>,
  );
  const texts: string[] = [];
  const see = async (text: string) => {
    await until(() => place.textContent === text);
    texts.push(text);
  };
  await see("fine");
  await client.mutation(api.rows.put, { list: "failing", rank: 1, text: "fail" });
  await see("asked_to_fail: This row fails");
  await client.mutation(api.rows.put, { list: "failing", rank: 1, text: "well again" });
  place.querySelector("button")?.click();
  await see("well again");
  await end();
  return texts;
}

/** A component that suspends, one that fails, and one that is unmounted, usually before its result arrives. */
export async function suspending() {
  function One({ rank }: { rank: number }) {
    return <p>{useSuspenseQuery(api.rows.text, { list: "suspending", rank })}</p>;
  }
  const shown: string[] = [];
  const { client, place, wire, show, end } = mount(null);
  const observer = new MutationObserver(() => shown.push(place.textContent ?? ""));
  observer.observe(place, { childList: true, characterData: true, subtree: true });
  const tree = (rank: number) => (
    <Boundary key={rank}>
      <Suspense fallback={<p>waiting</p>}>
        <One rank={rank} />
      </Suspense>
    </Boundary>
  );
  show(tree(1));
  await until(() => place.textContent === "one");
  await client.mutation(api.rows.put, { list: "suspending", rank: 1, text: "uno" });
  await until(() => place.textContent === "uno");
  show(tree(2));
  await until(() => place.textContent === "asked_to_fail: This row fails");
  const before = shown.length;
  show(tree(3));
  // The result may already have replaced the fallback.
  await until(() => shown.slice(before).includes("waiting"));
  show(null);
  const abandoned = wire.adds;
  // The queries of the abandoned and the unmounted components are released.
  await until(() => wire.live.size === 0);
  observer.disconnect();
  const { adds, removes } = wire;
  await end();
  return { shown: shown.filter((text, i) => text !== shown[i - 1]), abandoned, adds, removes };
}

/** Several queries in one component: values, an error, skipped queries, and the number of renders. */
export async function several() {
  type Seen = { one: unknown; two: unknown; bad: unknown; none: unknown };
  const seen: Seen[] = [];
  let renders = 0;
  function Many() {
    const results = useQueries({
      one: { query: api.rows.text, args: { list: "several", rank: 1 } },
      two: { query: api.rows.text, args: { list: "several", rank: 2 } },
      bad: { query: api.rows.text, args: { list: "several", rank: 3 } },
      none: { query: api.rows.text, args: "skip" },
    });
    useEffect(() => {
      renders++;
    });
    seen.push(results);
    return null;
  }
  const { client, show, end } = mount(<Many />);
  await until(() => seen.at(-1)?.one === "one");
  const { one, two, bad, none } = seen.at(-1) as Seen;
  const first = seen.at(-1);
  show(<Many />);
  await pause(50);
  const isSame = seen.at(-1) === first;
  renders = 0;
  await client.mutation(api.rows.put, { list: "several", rank: 2, text: "zwei" });
  await until(() => seen.at(-1)?.two === "zwei");
  await pause(50);
  await end();
  return { values: [one, two, bad instanceof Error, none], isSame, rendersOfOneChange: renders };
}

/** The connection's state as a component sees it: from the start, and during other updates. */
export async function connection() {
  const seen: string[] = [];
  function State() {
    const { isConnected, inflightMutations } = useConnectionState();
    useEffect(() => void seen.push(`${isConnected ? "live" : "not yet"} ${inflightMutations}`));
    return null;
  }
  const { client, end } = mount(<State />);
  await until(() => seen.at(-1) === "live 0");
  await client.mutation(api.rows.put, { list: "connection", rank: 1, text: "x" });
  await pause(50);
  await end();
  return seen;
}
