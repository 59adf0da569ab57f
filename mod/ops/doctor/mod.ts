/** The doctor: checks a data folder, with or without a running server. */
export { diagnose, type DoctorOptions } from "./doctor.ts";
export { type Finding, overall } from "./finding.ts";
