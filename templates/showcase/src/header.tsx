/** The header of the board: the timer, present users, and the account. */
import { type CSSProperties, useEffect, useState } from "react";
import { Authenticated, useConnectionState, useMutation, useQuery } from "syncline/react";
import { usePresence } from "syncline/react/presence";
import { api } from "../functions/_generated.ts";
import { Account } from "./account.tsx";

export function Header() {
  return (
    <header>
      <h1>Retrospective</h1>
      <Authenticated>
        <Timer />
        <People />
        <Account />
      </Authenticated>
    </header>
  );
}

/** A line above the page while the connection is lost, and a mark while changes are unsent. */
export function Connection() {
  const { isConnected, hasEverConnected, inflightMutations } = useConnectionState();
  return (
    <div className="connection">
      <span role="status">
        {isConnected ? "" : hasEverConnected ? "Offline. Changes are sent later." : "Connecting…"}
      </span>
      {isConnected && inflightMutations > 0 && <span className="saving">Saving…</span>}
    </div>
  );
}

function Timer() {
  const round = useQuery(api.rounds.current);
  const start = useMutation(api.rounds.start);
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  if (round === undefined) return null;
  if (round === null || round.isOver) {
    return (
      <button type="button" onClick={() => void start({ minutes: 5 }).catch(() => {})}>
        {round === null ? "Start 5 minutes" : "Time is up. Start again"}
      </button>
    );
  }
  const seconds = Math.max(0, Math.ceil((round.endsAt - now) / 1000));
  return (
    <span className="timer" role="timer">
      {Math.floor(seconds / 60)}:{String(seconds % 60).padStart(2, "0")}
    </span>
  );
}

function People() {
  const { members } = usePresence<Record<string, never>, { name: string }>("board", {});
  // A user may have several pages open.
  const people = new Map(members.map(({ userId, info }) => [userId ?? "", info.name]));
  return (
    <ul className="people" aria-label="Present">
      {[...people].map(([user, name]) => (
        <li key={user} title={name} style={{ "--hue": hueOf(user) } as CSSProperties}>
          <span aria-hidden="true">{name.slice(0, 2)}</span>
          <span className="hidden">{name}</span>
        </li>
      ))}
    </ul>
  );
}

function hueOf(id: string): number {
  return [...id].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 360, 7);
}
