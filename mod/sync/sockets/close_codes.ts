/** Close codes used by the server (RFC 6455, section 7.4.1). Except for 1012, clients go by the message before the close. */
export const closeCodes = {
  /** A binary frame. */
  unsupported: 1003,
  /** Malformed JSON. */
  malformed: 1007,
  /** A protocol violation, an exceeded limit or an invalid token. */
  protocol: 1008,
  /** A frame over the size limit. */
  tooLong: 1009,
  /** A server error. */
  internal: 1011,
  /** Shutdown or takeover. Clients reconnect immediately. */
  restart: 1012,
  /** Too many sockets. */
  overloaded: 1013,
} as const;
