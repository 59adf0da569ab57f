/** Checks the machine's clock against the documents, none of which should be from the future. */
import { doctorLimits } from "../limits.ts";
import type { Finding } from "./finding.ts";

/** `newest`: creation time of the newest document, or `null`. */
export function checkClock(now: number, newest: number | null): Finding {
  const time = new Date(now).toISOString();
  if (newest === null) {
    return { check: "clock", status: "ok", message: `${time}, no document to compare with` };
  }
  const behindMs = newest - now;
  if (behindMs <= doctorLimits.clockWarnMs) {
    return { check: "clock", status: "ok", message: `${time}, not behind any document` };
  }
  return {
    check: "clock",
    status: behindMs > doctorLimits.clockFailMs ? "fail" : "warn",
    message: `${time}, ${Math.round(behindMs / 1000)} s behind the newest document`,
  };
}
