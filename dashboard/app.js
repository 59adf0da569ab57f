// Shows what runs here: the version, whether the server is well, and how many commits it has made.

const HEALTH_INTERVAL_MS = 2000;

const element = (id) => document.getElementById(id);

element("sync").textContent = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/sync`;

async function showVersion() {
  const response = await fetch("./about");
  const { version } = await response.json();
  element("version").textContent = `version ${version}`;
}

async function showHealth() {
  let state = "down";
  let text = "not reachable";
  try {
    const response = await fetch("/api/health", { cache: "no-store" });
    const health = await response.json();
    if (response.ok) {
      state = "ok";
      text = "running";
      element("ts").textContent = health.ts.toLocaleString();
    } else {
      text = health.status;
    }
  } catch {
    // The server is gone or the network is: both read "not reachable".
  }
  element("state").dataset.state = state;
  // Said once, not every two seconds: assistive technology reads each change aloud.
  if (element("state").textContent !== text) element("state").textContent = text;
}

async function watchHealth() {
  if (!document.hidden) await showHealth();
  setTimeout(watchHealth, HEALTH_INTERVAL_MS);
}

showVersion().catch(() => {});
watchHealth();
