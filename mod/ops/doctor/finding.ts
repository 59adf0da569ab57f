/** What a check of a data folder found. */

export type Status = "ok" | "warn" | "fail";

export interface Finding {
  readonly check: "integrity" | "indexes" | "files" | "log" | "space" | "clock";
  /** `warn`: worth knowing, and nothing is wrong. */
  readonly status: Status;
  readonly message: string;
}

/** The worst of all. */
export function overall(findings: readonly Finding[]): Status {
  for (const status of ["fail", "warn"] as const) {
    if (findings.some((finding) => finding.status === status)) return status;
  }
  return "ok";
}
