/** People who have the channel open, and those who type. Pages share this through the room of the channel. */
import { useCallback, useEffect, useRef, useState } from "react";
import { usePresence } from "syncline/react/presence";
import type { Person } from "./api.ts";

/** Typing ends after a pause of this length. */
const PAUSE_MS = 5_000;

/** State of a page in the room. */
type PageState = {
  /** Name of a guest. Signed-in people have that of their account. */
  readonly name: string;
  readonly isTyping: boolean;
};

/** Joins the room of a channel. `touch` reports a change of the draft, `stop` its end. */
export function useRoom(channel: string, guestName: string) {
  const [isTyping, setIsTyping] = useState(false);
  const pause = useRef<ReturnType<typeof setTimeout>>(undefined);
  const name = guestName.trim() || "Guest";
  const { others, members } = usePresence<PageState, Person | null>(`channel ${channel}`, { name, isTyping });

  const stop = useCallback(() => {
    clearTimeout(pause.current);
    setIsTyping(false);
  }, []);
  const touch = useCallback((text: string) => {
    if (text.trim() === "") return stop();
    clearTimeout(pause.current);
    pause.current = setTimeout(stop, PAUSE_MS);
    setIsTyping(true);
  }, [stop]);
  useEffect(() => stop, [channel, stop]);
  const nameOf = ({ info, state }: (typeof members)[number]) => info?.name ?? state.name;
  return {
    touch,
    stop,
    /** Names of the others who type. */
    typing: [...new Set(others.filter(({ state }) => state.isTyping).map(nameOf))],
    /** Names of everyone who has the channel open. */
    present: [...new Set(members.map(nameOf))],
  };
}

/** The line that names who is writing. */
export function TypingLine({ names }: { readonly names: readonly string[] }) {
  return (
    <p className="typing" aria-live="polite">
      {names.length > 0 && (
        <>
          <span className="dots" aria-hidden="true">
            <i />
            <i />
            <i />
          </span>
          {sentence(names)}
        </>
      )}
    </p>
  );
}

function sentence(names: readonly string[]): string {
  if (names.length > 3) return "Several people are writing…";
  const last = names.at(-1);
  return names.length === 1
    ? `${last} is writing…`
    : `${names.slice(0, -1).join(", ")} and ${last} are writing…`;
}
