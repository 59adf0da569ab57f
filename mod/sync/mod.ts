/** Public API of `mod/sync`: sockets, shared queries and one-shot function calls over HTTP. */
export { type Channel, closeCodes, type SocketConnection, type SocketHandle } from "./sockets/socket.ts";
export {
  type Authenticator,
  type AuthErrorText,
  callerOf,
  guestCaller,
  noAccounts,
  type SessionEnd,
  type Verification,
} from "./authenticator.ts";
export { errorIdHeader, type HttpCalls, httpCalls, type HttpCallsOptions } from "./http_calls.ts";
export { Hub, type HubLoad, type HubOptions } from "./hub.ts";
export { refuseCall } from "./refuse_call.ts";
