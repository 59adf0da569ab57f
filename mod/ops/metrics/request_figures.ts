/** HTTP requests by route class and status class. */
import { Tally } from "../stats/mod.ts";

const ROUTES = [
  "call",
  "sync",
  "auth",
  "storage",
  "admin",
  "health",
  "metrics",
  "dashboard",
  "app",
  "unknown",
] as const;
const STATUSES = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const;

export type RouteClass = (typeof ROUTES)[number];
type StatusClass = (typeof STATUSES)[number];

export class RequestFigures {
  readonly answers = new Tally(ROUTES, STATUSES);

  /** Counts a response and returns it. `null`: the request was rejected before it had a path. */
  count<Answer extends Response | Promise<Response>>(path: string | null, answer: Answer): Answer {
    const route = path === null ? "unknown" : routeClass(path);
    if (answer instanceof Response) this.answers.add(route, statusClass(answer.status));
    else {
      (answer as Promise<Response>).then(
        ({ status }) => this.answers.add(route, statusClass(status)),
        () => this.answers.add(route, "5xx"),
      );
    }
    return answer;
  }

  /** Counts requests answered by another process; `path` identifies the route class. */
  answeredElsewhere(
    path: string,
    { status, count }: { readonly status: number; readonly count: number },
  ): void {
    this.answers.add(routeClass(path), statusClass(status), count);
  }
}

/** Returns the route class of a normalized path. */
export function routeClass(path: string): RouteClass {
  const [, first, second] = path.split("/", 4);
  if (first === "metrics" && second === undefined) return "metrics";
  if (first === "_") return "dashboard";
  if (first !== "api") return "app";
  switch (second) {
    case "query":
    case "mutation":
    case "action":
      return "call";
    case "sync":
    case "auth":
    case "storage":
    case "admin":
    case "health":
      return second;
    default:
      return "unknown";
  }
}

function statusClass(status: number): StatusClass {
  return STATUSES[Math.floor(status / 100) - 1] ?? "5xx";
}
