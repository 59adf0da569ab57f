/** Public API of `mod/sync`: sockets, shared queries and one-shot function calls over HTTP. */
export { closeCodes } from "./sockets/close_codes.ts";
export {
  type Authenticator,
  type AuthErrorText,
  noAccounts,
  type SessionEnd,
  type Verification,
} from "./authenticator.ts";
export type { Channel } from "./sockets/channel.ts";
export { errorIdHeader, type HttpCalls, httpCalls, type HttpCallsOptions } from "./http_calls.ts";
export { Hub, type HubOptions } from "./hub.ts";
export type { QueryWork } from "./queries/shared_queries.ts";
export { refuseCall } from "./refuse_call.ts";
export type { SocketConnection, SocketHandle } from "./sockets/socket.ts";
export { callerOf, guestCaller } from "./caller.ts";
