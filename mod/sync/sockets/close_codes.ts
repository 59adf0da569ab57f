/** Close codes the server uses (RFC 6455, section 7.4.1). Clients decide by the message before the close, but for 1012. */
export const closeCodes = {
  /** A binary frame. */
  unsupported: 1003,
  /** Text that is not JSON. */
  malformed: 1007,
  /** A protocol violation, a limit, or a token that is no longer valid. */
  protocol: 1008,
  /** A frame over the limit. */
  tooLong: 1009,
  /** A fault of the server. */
  internal: 1011,
  /** Shutdown or takeover: clients come back at once. */
  restart: 1012,
  /** Too many sockets. */
  overloaded: 1013,
} as const;
