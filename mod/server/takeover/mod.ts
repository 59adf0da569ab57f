/** One server takes over from another that runs: data folder, database, port and sockets. */
export { TakeoverDoor } from "./door.ts";
export { GivingWay } from "./giving_way.ts";
export { PassedRequests } from "./passed_requests.ts";
export { Passing } from "./passing.ts";
export { Predecessor } from "./predecessor.ts";
export { Succession } from "./succession.ts";
