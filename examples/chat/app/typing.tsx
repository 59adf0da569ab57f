/** Typing indicators: reports typing of this page and shows that of others. */
import { useCallback, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useMutation, useQuery, useSyncline } from "syncline/react";
import { api } from "./api.ts";

/** Interval at which typing is reported again; the server removes it after eight seconds. */
const RENEW_MS = 3_000;
/** Typing ends after a pause of this length. */
const PAUSE_MS = 5_000;

/** Identifies this page to the server. Other clients do not receive it. */
const page = randomId();

/** Reports to a channel whether the user of this page is typing. */
export function useTyping(channel: string, guestName: string) {
  const client = useSyncline();
  const set = useMutation(api.typing.set);
  const [ownRow, setOwnRow] = useState<string | null>(null);
  const saidAt = useRef(0);
  const pause = useRef<ReturnType<typeof setTimeout>>(undefined);

  const say = useCallback((isTyping: boolean) => {
    saidAt.current = isTyping ? performance.now() : 0;
    // A call made offline would be sent after the user has stopped typing.
    if (!client.connectionState().isConnected) return;
    set({ channel, name: guestName.trim() || "Guest", page, isTyping }).then(
      // The row is in the list by now: which one it is must be known before that is painted.
      (row) => flushSync(() => setOwnRow(row)),
      () => {},
    );
  }, [client, set, channel, guestName]);
  const stop = useCallback(() => {
    clearTimeout(pause.current);
    if (saidAt.current !== 0) say(false);
  }, [say]);
  const touch = useCallback((text: string) => {
    if (text.trim() === "") return stop();
    clearTimeout(pause.current);
    pause.current = setTimeout(stop, PAUSE_MS);
    if (saidAt.current === 0 || performance.now() - saidAt.current > RENEW_MS) say(true);
  }, [say, stop]);

  // Going to another channel, or away.
  const latest = useRef(stop);
  useEffect(() => {
    latest.current = stop;
  });
  useEffect(() => {
    const leave = () => latest.current();
    globalThis.addEventListener("pagehide", leave);
    return () => {
      globalThis.removeEventListener("pagehide", leave);
      leave();
    };
  }, [channel]);
  return { ownRow, touch, stop };
}

/** The line that names who is writing. */
export function TypingLine(
  { channel, ownRow }: { readonly channel: string; readonly ownRow: string | null },
) {
  const rows = useQuery(api.typing.list, { channel });
  const names = [...new Set(rows?.filter(({ _id }) => _id !== ownRow).map(({ name }) => name))];
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

/** `crypto.randomUUID` is missing on pages that come neither from this machine nor over TLS. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, i) => {
    const fixed = i === 6 ? byte & 0x0f | 0x40 : i === 8 ? byte & 0x3f | 0x80 : byte;
    return fixed.toString(16).padStart(2, "0");
  }).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
