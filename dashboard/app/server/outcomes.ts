/** Outcomes of runs, as the filter of the logs names them. */

/** Every outcome but success. */
export const FAILURES = "user_error,error,timeout,refused";
/** Failures that are no decision of the app: those that statistics and issues count as errors. */
export const ERRORS = "error,timeout,refused";
