/** Decides which HTTP requests a follower forwards to the leader, and limits them for each client. */
import { linkLimits } from "../../cluster/limits.ts";

/** Below `/api/admin/`: reports about the server itself. */
const OWN_REPORTS = new Set(["cluster", "logs", "replication"]);

/** Below `/api/admin/`, for any method: operations on this process or its database. */
const OWN_OPERATIONS = new Set(["restore", "export"]);

export interface RequestTarget {
  readonly method: string;
  /** Normalized. */
  readonly path: string;
}

/** Whether a request (no function call) may write or needs the leader's state. `isRoute`: the app has a route for it. */
export function isForLeader({ method, path }: RequestTarget, isRoute: () => boolean): boolean {
  // All servers answer CORS preflight requests alike.
  if (method === "OPTIONS") return false;
  if (!isBelow(path, "/api")) {
    return !isBelow(path, "/_") && path !== "/metrics" && isRoute();
  }
  const [, , part = "", first = ""] = path.split("/", 4);
  const isRead = method === "GET" || method === "HEAD";
  switch (part) {
    case "auth":
      return true;
    case "storage":
      // Resumable uploads are stored on the server that accepts them.
      return !isRead || first === "resumable";
    case "admin":
      return !OWN_OPERATIONS.has(first) && (!isRead || !OWN_REPORTS.has(first));
    default:
      return false;
  }
}

function isBelow(pathname: string, folder: string): boolean {
  return pathname === folder || pathname.startsWith(`${folder}/`);
}

/** Limits the concurrent requests of each client to the leader, so that none uses most of the connections. */
export class ClientRequestLimit {
  readonly #requests = new Map<string, number>();

  /** Counts a request until the promise settles. Returns `false` if the client has reached the limit. */
  take(client: string, until: Promise<unknown>): boolean {
    const before = this.#requests.get(client) ?? 0;
    if (before >= linkLimits.tunnelsOfClientMax) return false;
    this.#requests.set(client, before + 1);
    const over = () => {
      const left = (this.#requests.get(client) ?? 1) - 1;
      if (left === 0) this.#requests.delete(client);
      else this.#requests.set(client, left);
    };
    until.then(over, over);
    return true;
  }
}
