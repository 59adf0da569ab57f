/** A new process takes over from a running one: data folder, database, port and sockets. */
export { TakeoverDoor } from "./door.ts";
export { GivingWay } from "./giving_way.ts";
export { PassedRequests } from "./passed_requests.ts";
export { Passing } from "./passing.ts";
export { Predecessor } from "./predecessor.ts";
export { Succession } from "./succession.ts";
