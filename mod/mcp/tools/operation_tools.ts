/** Tools for the execution log, statistics, deploys, options and the documentation. */
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { mcpLimits } from "../limits.ts";
import { readTool, type Tool } from "./tool.ts";

export const operationTools: readonly Tool[] = [
  readTool({
    name: "search_logs",
    description: "Search the execution log: runs of functions with outcome, duration, error, stack and log " +
      "lines, newest first.",
    args: z.strictObject({
      function: z.string().optional().describe("Paths separated by commas; orders:* matches a prefix"),
      kind: z.enum(["query", "mutation", "action"]).optional(),
      outcome: z.string().optional().describe(
        "success, user_error, error, timeout, refused; separated by commas",
      ),
      level: z.enum(["DEBUG", "INFO", "WARN", "ERROR"]).optional().describe(
        "With a log line of at least this level",
      ),
      text: z.string().optional().describe("Text in the error or a log line"),
      request: z.string().optional().describe("Request ID, with the runs that it caused"),
      from: z.string().optional().describe("ISO 8601 time"),
      to: z.string().optional().describe("ISO 8601 time"),
      version: z.string().optional().describe(
        "Hash of the version that served the run, or its first 4 or more characters",
      ),
      minMs: z.int().min(1).optional().describe("Minimum duration"),
      system: z.boolean().default(false).describe("Also runs of Syncline's own functions"),
      limit: z.int().min(1).max(mcpLimits.runsMax).default(mcpLimits.runsDefault),
      cursor: z.string().optional(),
    }),
    noted: ["function", "outcome", "limit"],
    async run(args, { logs }) {
      const given = Object.entries(args).filter(([name, value]) =>
        value !== undefined && !(name === "system" && value === true)
      );
      const page = await logs(new URLSearchParams(given.map(([name, value]) => [name, String(value)])));
      const { runs, cursor } = page as { readonly runs: unknown; readonly cursor: unknown };
      return { runs, cursor };
    },
  }),
  readTool({
    name: "get_stats",
    description:
      "Get statistics of the server: runs by function, durations, sockets, subscriptions, queues, " +
      "memory, disk.",
    args: z.strictObject({}),
    run: (_, { stats }) => stats(),
  }),
  readTool({
    name: "list_deploys",
    description:
      "List the deployed versions of the app's code, when and by whom they were deployed, and which " +
      "one is served.",
    args: z.strictObject({}),
    run: (_, { deploys }) => deploys(),
  }),
  readTool({
    name: "compare_deploy",
    description:
      "Show what would change if a version of list_deploys were served instead of the current one: " +
      "functions, tables, indexes, cron jobs, routes, and documents that do not match. Changes nothing.",
    args: z.strictObject({ hash: z.string() }),
    noted: ["hash"],
    run: ({ hash }, { compareDeploy }, caller) => compareDeploy(hash, caller),
  }),
  readTool({
    name: "list_options",
    description:
      "List the options that administrators can change while the server runs, with their values. " +
      "Secrets are not shown.",
    args: z.strictObject({}),
    async run(_, { call }) {
      const settings = await call("_admin/settings:list", {}) as readonly {
        readonly text: string | null;
        readonly encryptsSecrets: boolean;
      }[];
      // The dashboard needs encrypted secrets to edit the value around them.
      return settings.map((each) => each.encryptsSecrets ? { ...each, text: null } : each);
    },
  }),
  readTool({
    name: "read_documentation",
    description:
      "Read the documentation of this version of Syncline. Without arguments: the list of pages. " +
      "Read the pages schema, queries and functions before you write functions.",
    args: z.strictObject({
      page: z.string().optional().describe("Name of a page, such as queries"),
      search: z.string().optional().describe("Words to search in all pages"),
    }),
    noted: ["page"],
    async run({ page, search }, { docs }) {
      if (search !== undefined) return await docs.find(search);
      if (page === undefined) return await docs.index();
      const found = await docs.page(page);
      if (found === null) {
        throw new ServiceError(
          "not_found",
          `There is no page "${page}": call without arguments for the list`,
        );
      }
      return found;
    },
  }),
];
