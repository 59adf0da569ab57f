/** Cron jobs. */
import { cronJobs } from "syncline/server";
import { internal } from "./_generated.ts";

const crons = cronJobs();
crons.interval("remove absent users", { seconds: 10 }, internal.presence.removeStale);

export default crons;
