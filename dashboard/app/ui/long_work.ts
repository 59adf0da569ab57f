/** Work of this page that takes long: it goes on while a person is elsewhere in the dashboard, which says what is under way. */
import { useSyncExternalStore } from "react";
import { note } from "./notes.tsx";

export interface LongWork {
  readonly id: number;
  /** What is done, and how far it is. */
  readonly text: string;
  /** Name of the view that began it, which offers no second one meanwhile. */
  readonly view: string;
  /** `null` where it cannot be ended. */
  readonly cancel: (() => void) | null;
}

export interface WorkSteps {
  /** Says how far it is. */
  readonly tell: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface WorkOptions {
  readonly view: string;
  readonly text: string;
  /** Said when it has succeeded. */
  readonly done?: string;
  readonly cancelable?: boolean;
}

let works: readonly LongWork[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function show(now: readonly LongWork[]): void {
  works = now;
  // Whoever closes the page meanwhile is asked first.
  if (works.length === 0) removeEventListener("beforeunload", askFirst);
  else addEventListener("beforeunload", askFirst);
  for (const listener of listeners) listener();
}

function askFirst(event: Event): void {
  event.preventDefault();
}

/** Begins a work. Gives whether it succeeded; a failure is told. */
export async function longWork(
  { view, text, done, cancelable = false }: WorkOptions,
  work: (steps: WorkSteps) => Promise<unknown>,
): Promise<boolean> {
  const id = nextId++;
  const ending = new AbortController();
  const cancel = cancelable ? () => ending.abort() : null;
  const tell = (text: string) => show(works.map((other) => other.id === id ? { ...other, text } : other));
  show([...works, { id, text, view, cancel }]);
  try {
    await work({ tell, signal: ending.signal });
    if (done !== undefined) note(done);
    return true;
  } catch (error) {
    if (!ending.signal.aborted) note(error instanceof Error ? error.message : String(error), { tone: "bad" });
    return false;
  } finally {
    show(works.filter((other) => other.id !== id));
  }
}

function onChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useLongWorks(): readonly LongWork[] {
  return useSyncExternalStore(onChange, () => works);
}

/** Whether a view has work under way. */
export function useIsBusy(view: string): boolean {
  return useLongWorks().some((work) => work.view === view);
}
