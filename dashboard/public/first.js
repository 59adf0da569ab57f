// Before anything is drawn: light or dark as it was chosen here, whether somebody is signed in, whom the frame is for, and
// what the overview shows is asked for, so that it is there when the scripts are.
const FRESH_MS = 30_000;
const ASKED = ["/api/admin/stats", "/api/admin/backups", "/api/admin/cluster", "_admin/data:sizes"];

const { dataset } = document.documentElement;
const theme = localStorage.getItem("syncline.theme");
if (theme === "light" || theme === "dark") dataset.theme = theme;
const kept = localStorage.getItem("syncline.admin");
if (kept !== null) dataset.admin = "true";
// The frame comes first.
if (kept !== null && /^#?\/?(overview)?(\?.*)?$/.test(location.hash)) setTimeout(askEarly, 0, kept);

/** Answers by path, which `app/ui/use_request.ts` takes. Whatever goes wrong here is asked for again there. */
function askEarly(kept) {
  try {
    const { accessToken, expiresAt } = JSON.parse(kept);
    if (expiresAt - Date.now() < FRESH_MS) return;
    globalThis.synclineEarly = new Map(ASKED.map((path) => [path, answerOf(path, accessToken)]));
  } catch {
    // What is kept is no session.
  }
}

function answerOf(path, token) {
  const entry = { at: performance.now(), value: undefined, arrives: undefined };
  const headers = { Authorization: `Bearer ${token}` };
  const asked = path.startsWith("/") ? fetch(path, { headers }) : fetch("/api/action", {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify({ path, args: {} }),
  });
  entry.arrives = asked.then(async (response) => {
    if (!response.ok) return undefined;
    const answer = await response.json();
    return entry.value = path.startsWith("/") ? answer : answer.value;
  }).catch(() => undefined);
  return entry;
}
