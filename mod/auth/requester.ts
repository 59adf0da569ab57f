/** Who sends a request to the auth endpoints, as far as accounts care. */
export interface Requester {
  /** Address of the client, behind trusted proxies if there are any. */
  readonly client: string;
  /** Its `User-Agent`, by which a person recognises their sessions. */
  readonly userAgent: string | null;
}
