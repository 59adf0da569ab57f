/** Background tasks of this page. They continue while the user visits other views. */
import { useSyncExternalStore } from "react";
import { showToast } from "./toasts.tsx";

export interface PageTask {
  readonly id: number;
  /** Description, including progress. */
  readonly text: string;
  /** View that started the task. It does not offer a second one until this one ends. */
  readonly view: string;
  /** `null` if the task cannot be canceled. */
  readonly cancel: (() => void) | null;
}

export interface TaskControl {
  /** Updates the description. */
  readonly report: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface TaskOptions {
  readonly view: string;
  readonly text: string;
  /** Message shown on success. */
  readonly done?: string;
  readonly cancelable?: boolean;
}

let tasks: readonly PageTask[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function show(now: readonly PageTask[]): void {
  tasks = now;
  // Ask for confirmation before the page is closed during a task.
  if (tasks.length === 0) removeEventListener("beforeunload", confirmClose);
  else addEventListener("beforeunload", confirmClose);
  for (const listener of listeners) listener();
}

function confirmClose(event: Event): void {
  event.preventDefault();
}

/** Runs a task and shows a toast if it fails. Returns whether it succeeded. */
export async function runPageTask(
  { view, text, done, cancelable = false }: TaskOptions,
  work: (steps: TaskControl) => Promise<unknown>,
): Promise<boolean> {
  const id = nextId++;
  const ending = new AbortController();
  const cancel = cancelable ? () => ending.abort() : null;
  const report = (text: string) => show(tasks.map((other) => other.id === id ? { ...other, text } : other));
  show([...tasks, { id, text, view, cancel }]);
  try {
    await work({ report, signal: ending.signal });
    if (done !== undefined) showToast(done);
    return true;
  } catch (error) {
    if (!ending.signal.aborted) {
      showToast(error instanceof Error ? error.message : String(error), { tone: "bad", stays: true });
    }
    return false;
  } finally {
    show(tasks.filter((other) => other.id !== id));
  }
}

function onChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePageTasks(): readonly PageTask[] {
  return useSyncExternalStore(onChange, () => tasks);
}

export function useIsBusy(view: string): boolean {
  return usePageTasks().some((work) => work.view === view);
}
