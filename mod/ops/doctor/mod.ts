/** The doctor: checks a data folder, with or without a running server. */
export { diagnose, type DoctorOptions, type Finding, overall } from "./doctor.ts";
