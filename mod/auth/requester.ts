/** The sender of a request to the auth endpoints. */
export interface Requester {
  /** Client address, taking trusted proxies into account. */
  readonly client: string;
  /** The `User-Agent`, by which users recognise their sessions. */
  readonly userAgent: string | null;
}
