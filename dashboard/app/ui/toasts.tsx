/** Toasts: call `showToast` from anywhere and render `Toasts` once. */
import { useSyncExternalStore } from "react";
import { Button, Icon } from "./controls.tsx";

export interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
  /** An action such as "Undo". */
  readonly action?: { readonly text: string; readonly run: () => void };
  /** Whether an error stays until it is dismissed. */
  readonly stays: boolean;
}

/** Maximum number of toasts; the oldest is dropped. */
const SHOWN_MAX = 4;
const SHOWN_MS = 8_000;

let toasts: readonly Toast[] = [];
let nextId = 1;
/** Toasts do not expire while the pointer or the focus is on them, so that none moves under a click. */
let isPaused = false;
const listeners = new Set<() => void>();

function show(now: readonly Toast[]): void {
  toasts = now;
  for (const listener of listeners) listener();
}

/** Shows a toast. Errors are shown until the next action or view, those that stay until they are dismissed. */
export function showToast(
  text: string,
  options: Partial<Pick<Toast, "tone" | "action" | "stays">> = {},
): void {
  const id = nextId++;
  show([...toasts, { id, tone: "good" as const, text, stays: false, ...options }].slice(-SHOWN_MAX));
  if (options.tone !== "bad") setTimeout(expire, SHOWN_MS, id);
}

function expire(id: number): void {
  if (isPaused) setTimeout(expire, SHOWN_MS, id);
  else dismiss(id);
}

function dismiss(id: number): void {
  keep((toast) => toast.id !== id);
}

/** Removes the errors of the previous action. Called when another one begins, and when another view is shown. */
export function dismissErrors(): void {
  keep(({ tone, stays }) => tone !== "bad" || stays);
}

function keep(isKept: (toast: Toast) => boolean): void {
  const left = toasts.filter(isKept);
  if (left.length === toasts.length) return;
  // Removing the last toast removes the element under the pointer without a leave event.
  if (left.length === 0) isPaused = false;
  show(left);
}

/** Runs a user's action and shows a toast if it fails. Returns whether it succeeded. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  dismissErrors();
  try {
    await work();
    if (done !== undefined) showToast(done);
    return true;
  } catch (error) {
    showToast(error instanceof Error ? error.message : String(error), { tone: "bad" });
    return false;
  }
}

export function Toasts() {
  const shown = useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, () => toasts);
  const pause = () => void (isPaused = true);
  const resume = () => void (isPaused = false);
  return (
    <div
      className="toasts"
      role="status"
      aria-live="polite"
      onPointerEnter={pause}
      onPointerLeave={resume}
      onFocus={pause}
      onBlur={resume}
    >
      {shown.map(({ id, tone, text, action }) => (
        <div key={id} className="toast" data-tone={tone}>
          <span className="grow">{text}</span>
          {action && <Button onClick={action.run}>{action.text}</Button>}
          <Button
            tone="plain"
            aria-label="Dismiss"
            onClick={() => dismiss(id)}
          >
            <Icon name="close" />
          </Button>
        </div>
      ))}
    </div>
  );
}
