/** Results of the checks. */

export type Status = "ok" | "warn" | "fail";

export interface Finding {
  readonly check: "integrity" | "indexes" | "files" | "log" | "space" | "clock";
  /** `warn`: informational, not a defect. */
  readonly status: Status;
  readonly message: string;
}

/** The most severe status. */
export function overall(findings: readonly Finding[]): Status {
  for (const status of ["fail", "warn"] as const) {
    if (findings.some((finding) => finding.status === status)) return status;
  }
  return "ok";
}
