/** Short messages about what was done: `note` from anywhere, `Notes` once in the page. */
import { useSyncExternalStore } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

export interface Note {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
  /** One thing that can be done about it, such as taking it back. */
  readonly action?: { readonly text: string; readonly run: () => void };
}

/** More than these push the oldest out. */
const SHOWN_MAX = 4;
const SHOWN_MS = 8_000;

let notes: readonly Note[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function show(now: readonly Note[]): void {
  notes = now;
  for (const listener of listeners) listener();
}

/** Shows a message; errors stay until they are closed. */
export function note(text: string, options: Partial<Pick<Note, "tone" | "action">> = {}): void {
  const id = nextId++;
  show([...notes, { id, tone: "good" as const, text, ...options }].slice(-SHOWN_MAX));
  if (options.tone !== "bad") setTimeout(() => show(notes.filter((kept) => kept.id !== id)), SHOWN_MS);
}

/** Runs something a person asked for, and tells of its failure. Gives whether it succeeded. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done !== undefined) note(done);
    return true;
  } catch (error) {
    note(error instanceof Error ? error.message : String(error), { tone: "bad" });
    return false;
  }
}

export function Notes() {
  const shown = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => notes);
  return (
    <div className="notes" role="status" aria-live="polite">
      {shown.map(({ id, tone, text, action }) => (
        <div key={id} className="note" data-tone={tone}>
          <span className="grow">{text}</span>
          {action && <Button onClick={action.run}>{action.text}</Button>}
          <Button
            tone="plain"
            aria-label="Close this message"
            onClick={() => show(notes.filter((kept) => kept.id !== id))}
          >
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
