/** Whether the machine's clock can be right, as far as the documents tell: none is made in the future. */
import { doctorLimits } from "../limits.ts";
import type { Finding } from "./finding.ts";

/** `newest`: the creation time of the newest document; `null` when that is not known. */
export function checkClock(now: number, newest: number | null): Finding {
  const time = new Date(now).toISOString();
  if (newest === null) {
    return { check: "clock", status: "ok", message: `${time}, with no document to compare it with` };
  }
  const behindMs = newest - now;
  if (behindMs <= doctorLimits.clockWarnMs) {
    return { check: "clock", status: "ok", message: `${time}, behind no document` };
  }
  return {
    check: "clock",
    status: behindMs > doctorLimits.clockFailMs ? "fail" : "warn",
    message: `${time}, ${Math.round(behindMs / 1000)} s behind the newest document`,
  };
}
