/** Whether this window was sent to a provider: only then what the page's address says is believed in other tabs. */

const KEY = "syncline-way-out";

interface WindowStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Notes that the window goes to a provider, or one that it opens: that one gets a copy of the note. */
export function noteWayOut(): void {
  windowStorage()?.setItem(KEY, "1");
}

/** Whether that was noted; takes the note away. */
export function takeWayOut(): boolean {
  const storage = windowStorage();
  const noted = storage?.getItem(KEY) === "1";
  if (noted) storage.removeItem(KEY);
  return noted;
}

/** `null` where there is none, or it is blocked. */
function windowStorage(): WindowStorage | null {
  try {
    return (globalThis as { sessionStorage?: WindowStorage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}
