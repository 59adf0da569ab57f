/** Limits of the MCP server. */

const MiB = 1024 * 1024;

export const mcpLimits = {
  /** A request with its messages. */
  bodyBytesMax: 1 * MiB,
  /** The text of an answer; longer ones are cut. */
  answerCharsMax: 60_000,
  /** Documents of a page. */
  documentsMax: 100,
  documentsDefault: 20,
  /** Runs of a page of the execution log. */
  runsMax: 100,
  runsDefault: 20,
  /** Tool calls in progress, counted separately for administrators and API keys; more are refused. */
  callsMax: 16,
  /** Messages of the command line in progress; others wait. */
  messagesMax: 4,
} as const;
