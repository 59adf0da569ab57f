/** Two threads that repeatedly start to collect their garbage. */
import { collectWhenIdle } from "../../mod/kit/processes/idle_collection.ts";

const BEGINNINGS = 50;

if (import.meta.url.endsWith("#worker")) {
  begin();
  (self as unknown as Worker).postMessage(null);
} else {
  const worker = new Worker(`${import.meta.url}#worker`, { type: "module" });
  const ended = new Promise((resolve) => worker.onmessage = resolve);
  begin();
  await ended;
  worker.terminate();
}

function begin(): void {
  for (let i = 0; i < BEGINNINGS; i++) collectWhenIdle();
}
