/** Takeover of a running server by a new process. */
export { OldProcess } from "./old_process.ts";
export { TakeoverListener } from "./takeover_listener.ts";
