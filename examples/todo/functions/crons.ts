/** Cron jobs. */
import { cronJobs } from "syncline/server";
import { internal } from "./_generated.ts";

const crons = cronJobs();
crons.daily("remove old done items", { hourUTC: 3, minuteUTC: 0 }, internal.cleanup.removeDone);

export default crons;
