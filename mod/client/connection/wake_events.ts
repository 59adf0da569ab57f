/** Detects when to retry the connection: the network is back, the page is visible again, or time has jumped. */
import { Alarm, type Clock } from "../clock.ts";
import * as clientLimits from "../limits.ts";

interface EventSource {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
}

/** Calls `wake` on each event, if the platform has them. Returns a function that stops it. */
export function onWake(clock: Clock, wake: () => void): () => void {
  const scope = globalThis as unknown as Partial<EventSource> & {
    document?: EventSource & { visibilityState: string };
  };
  const page = scope.document;
  // Outside a page, global events have other meanings.
  if (page === undefined || scope.addEventListener === undefined || scope.removeEventListener === undefined) {
    return () => {};
  }
  const window = scope as EventSource;
  const shown = () => {
    if (page.visibilityState === "visible") wake();
  };
  window.addEventListener("online", wake);
  window.addEventListener("pageshow", wake);
  page.addEventListener("visibilitychange", shown);
  page.addEventListener("resume", wake);
  const endWatch = watchForSleep(clock, wake);
  return () => {
    endWatch();
    page.removeEventListener("resume", wake);
    window.removeEventListener("online", wake);
    window.removeEventListener("pageshow", wake);
    page.removeEventListener("visibilitychange", shown);
  };
}

/** A machine that sleeps while the page is visible is only detected by a late timer. */
function watchForSleep(clock: Clock, wake: () => void): () => void {
  const alarm = new Alarm(clock);
  const check = () => {
    const setAt = clock.now();
    alarm.set(clientLimits.sleepCheckMs, () => {
      if (clock.now() - setAt > clientLimits.sleepCheckMs + clientLimits.suspendedMs) wake();
      check();
    });
  };
  check();
  return () => alarm.clear();
}

/** Whether the page is hidden; `false` outside a page. */
export function pageIsHidden(): boolean {
  return (globalThis as { document?: { visibilityState?: string } }).document?.visibilityState === "hidden";
}
