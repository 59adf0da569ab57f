/** Bounded requests to configured https hosts without redirects. A host that only a remote document names is refused. */
import { externalLimits } from "../limits.ts";

/** A request was refused or its response is unusable. The message may be logged; it contains no secrets. */
export class OutgoingError extends Error {
  override readonly name = "OutgoingError";
  /** Whether a response was received. */
  readonly answered: boolean;

  constructor(
    message: string,
    { answered = false, ...options }: ErrorOptions & { readonly answered?: boolean } = {},
  ) {
    super(message, options);
    this.answered = answered;
  }
}

export interface BoundedFetchOptions {
  /** Allowed hosts, with ports unless they are the default of the scheme. */
  readonly hosts: ReadonlySet<string>;
  readonly fetch?: typeof fetch;
  readonly requestMs?: number;
  readonly answerBytesMax?: number;
}

export type BoundedFetch = (url: string, init?: RequestInit) => Promise<Response>;

/** Returns a fetch for one provider or issuer. Responses are already read. Throws {@linkcode OutgoingError}. */
export function boundedFetch(
  {
    hosts,
    fetch: send = fetch,
    requestMs = externalLimits.requestMs,
    answerBytesMax = externalLimits.answerBytesMax,
  }: BoundedFetchOptions,
): BoundedFetch {
  let running = 0;
  return async (text, { signal: _signal, ...init } = {}) => {
    const url = allowed(text, hosts);
    if (running >= externalLimits.requestsAtOnceMax) {
      throw new OutgoingError(`Too many concurrent requests to ${url.host}`);
    }
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), requestMs);
    running++;
    try {
      const response = await send(url, { ...init, redirect: "manual", signal: over.signal });
      return await readWhole(response, { url, answerBytesMax });
    } catch (error) {
      if (error instanceof OutgoingError) throw error;
      const reason = over.signal.aborted ? `no response within ${requestMs} ms` : "the request failed";
      throw new OutgoingError(`${url.host}: ${reason}`, { cause: error });
    } finally {
      running--;
      clearTimeout(timer);
    }
  };
}

/** Whether plain http is allowed, because requests do not leave this machine. */
export function isThisMachine(url: URL): boolean {
  const { hostname } = url;
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d+){3}$/.test(hostname);
}

function allowed(text: string, hosts: ReadonlySet<string>): URL {
  const url = URL.parse(text);
  if (url === null) throw new OutgoingError("Cannot send a request: invalid URL");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isThisMachine(url))) {
    throw new OutgoingError(`Cannot send a request to ${url.host} over ${url.protocol.slice(0, -1)}`);
  }
  if (!hosts.has(url.host)) throw new OutgoingError(`${url.host} is not a configured host`);
  if (url.username !== "" || url.password !== "") {
    throw new OutgoingError(`Cannot send a request to ${url.host}: the URL contains credentials`);
  }
  return url;
}

async function readWhole(
  response: Response,
  { url, answerBytesMax }: { readonly url: URL; readonly answerBytesMax: number },
): Promise<Response> {
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    throw new OutgoingError(`${url.host} responded with a redirect, which is not followed`);
  }
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) {
      // Leaving the loop cancels the body.
      throw new OutgoingError(`${url.host} responded with more than ${answerBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  const kept = new Headers();
  for (const name of ["content-type", "www-authenticate", "dpop-nonce"]) {
    const value = headers.get(name);
    if (value !== null) kept.set(name, value);
  }
  const empty = status === 204 || status === 205;
  return new Response(empty ? null : new Blob(chunks), { status, headers: kept });
}
