/** A new process takes over from a running one: data folder, database, port and sockets. */
export { TakeoverListener } from "./takeover_listener.ts";
export { Handover } from "./handover.ts";
export { ForwardedRequests } from "./forwarded_requests.ts";
export { HeldRequests } from "./held_requests.ts";
export { OldProcess } from "./old_process.ts";
export { TakeoverCompletion } from "./takeover_completion.ts";
