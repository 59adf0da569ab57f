/** Entry of the log worker, a thread that owns the log's database. */
import { collectWhenIdle } from "../../../kit/processes/idle_collection.ts";
import { logLimits } from "../../limits.ts";
import { LogKeeper } from "./log_keeper.ts";
import type { FromLogWorker, ToLogWorker } from "./messages.ts";

const main = self as unknown as {
  onmessage: (event: MessageEvent<ToLogWorker>) => void;
  postMessage(message: FromLogWorker): void;
};

let keeper: LogKeeper | null = null;

main.onmessage = ({ data: message }) => {
  if (message.type === "Start") {
    keeper = new LogKeeper({ ...message, now: Date.now, send: (message) => main.postMessage(message) });
    return cleanUp(keeper);
  }
  const { call, method, args } = message;
  const answer = (keeper?.[method] as (...args: readonly unknown[]) => unknown).apply(keeper, [...args]);
  main.postMessage({ type: "Answer", call, answer: answer ?? null });
};

collectWhenIdle({ trim: () => keeper?.releaseCache() });

/** Deletes in small batches, so that runs and searches do not wait long. */
function cleanUp(keeper: LogKeeper): void {
  const isDone = !keeper.cleanUp();
  setTimeout(() => cleanUp(keeper), isDone ? logLimits.cleanUpMs : logLimits.cleanUpPauseMs);
}
