/** Which requests a server of a cluster that does not lead leaves to the leader: all that may write, and what only it knows. */

/** Below `/api/admin/`: what a server tells of itself. */
const OWN_REPORTS = new Set(["cluster", "logs", "replication"]);

/** Also there, however it is asked: what acts on the process that is asked, or reads in its own database. */
const OWN_ACTS = new Set(["restore", "export"]);

export interface AskedRequest {
  readonly method: string;
  /** In normal form. */
  readonly path: string;
}

/** `isRoute`: whether the app has a route for the request. Calls of functions find their own way. */
export function isForLeader({ method, path }: AskedRequest, isRoute: () => boolean): boolean {
  // What browsers ask beforehand is answered alike everywhere.
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
      // Uploads in pieces are known to the server that takes them.
      return !isRead || first === "resumable";
    case "admin":
      return !OWN_ACTS.has(first) && (!isRead || !OWN_REPORTS.has(first));
    default:
      return false;
  }
}

function isBelow(pathname: string, folder: string): boolean {
  return pathname === folder || pathname.startsWith(`${folder}/`);
}
