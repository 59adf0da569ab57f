/** The text of a stream in a component. */
import { useEffect, useState } from "react";
import { readText, StreamError } from "../../streams/mod.ts";
import { useClient } from "../provider.ts";

/** The text of a stream so far. */
export interface StreamText {
  readonly text: string;
  /** Whether the text is complete. */
  readonly isDone: boolean;
  /** Why it does not continue; `null` if it does. */
  readonly error: StreamError | null;
}

const empty: StreamText = Object.freeze({ text: "", isDone: false, error: null });

/**
 * Reads the text of a stream while the component is mounted, and re-renders when more arrives. `null` reads none.
 *
 * @example
 * ```tsx
 * const { text, isDone } = useStreamText(answer.stream);
 * ```
 */
export function useStreamText(id: string | null): StreamText {
  const client = useClient();
  const [state, setState] = useState({ id, ...empty });
  useEffect(() => {
    if (client === null || id === null) return;
    const stop = new AbortController();
    const { signal } = stop;
    let text = "";
    const show = (end: Pick<StreamText, "isDone" | "error">) => {
      if (!signal.aborted) setState({ id, text, ...end });
    };
    const read = async () => {
      try {
        for await (const part of readText(client, id, { signal })) {
          text += part;
          show({ isDone: false, error: null });
        }
        show({ isDone: true, error: null });
      } catch (error) {
        if (error instanceof StreamError) show({ isDone: false, error });
        else if (!signal.aborted) throw error;
      }
    };
    void read();
    return () => stop.abort();
  }, [client, id]);
  // State of an earlier stream is not shown for this one.
  return state.id === id ? state : empty;
}
