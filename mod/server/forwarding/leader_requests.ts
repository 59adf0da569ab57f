/** Decides which requests a follower forwards to the leader: those that may write or need the leader's state. */

/** Below `/api/admin/`: reports about the server itself. */
const OWN_REPORTS = new Set(["cluster", "logs", "replication"]);

/** Below `/api/admin/`, for any method: operations on this process or its database. */
const OWN_OPERATIONS = new Set(["restore", "export"]);

export interface RequestTarget {
  readonly method: string;
  /** Normalized. */
  readonly path: string;
}

/** `isRoute`: whether the app has a route for the request. Function calls are forwarded elsewhere. */
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
