/** Cron jobs. */
import { cronJobs } from "syncline/server";
import { internal } from "./_generated.ts";

const crons = cronJobs();
crons.interval("remove stale typing rows", { seconds: 5 }, internal.typing.removeStale);

export default crons;
