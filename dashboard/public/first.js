// Runs before the first paint: applies the stored theme, shows the static frame to signed-in administrators, and prefetches
// the overview's data while the scripts load.
const FRESH_MS = 30_000;
const PREFETCHED = ["/api/admin/stats", "_admin/alerts:issues", "/api/admin/backups", "_admin/data:sizes"];

const { dataset } = document.documentElement;
const theme = localStorage.getItem("syncline.theme");
if (theme === "light" || theme === "dark") dataset.theme = theme;
const stored = localStorage.getItem("syncline.admin");
if (stored !== null) dataset.admin = "true";
// Paint the frame first.
if (stored !== null && /^#?\/?(overview)?(\?.*)?$/.test(location.hash)) setTimeout(prefetch, 0, stored);

/** Prefetches responses for `app/ui/use_request.ts`, which repeats failed requests. */
function prefetch(stored) {
  try {
    const { accessToken, expiresAt } = JSON.parse(stored);
    if (expiresAt - Date.now() < FRESH_MS) return;
    globalThis.synclinePrefetched = new Map(PREFETCHED.map((path) => [path, load(path, accessToken)]));
  } catch {
    // The stored value is not a session.
  }
}

function load(path, token) {
  const entry = { at: performance.now(), value: undefined, response: undefined };
  const headers = { Authorization: `Bearer ${token}` };
  const asked = path.startsWith("/") ? fetch(path, { headers }) : fetch("/api/action", {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify({ path, args: {} }),
  });
  entry.response = asked.then(async (response) => {
    if (!response.ok) return undefined;
    const answer = await response.json();
    return entry.value = path.startsWith("/") ? answer : answer.value;
  }).catch(() => undefined);
  return entry;
}
