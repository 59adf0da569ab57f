/** The doctor: whether a data folder is sound, while a server uses it or not. */
export { diagnose, type DoctorOptions } from "./doctor.ts";
export { type Finding, overall } from "./finding.ts";
