/** What the bystander waits when there is nobody else: what the other rows are to be compared with. */
import type { Scenario } from "../support/scenario.ts";

const QUIET_MS = 3_000;

export const controlScenarios: readonly Scenario[] = [
  {
    rule: "none",
    name: "nobody else: the control",
    mayWait: null,
    attack: async () => {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      return "to compare with";
    },
  },
];
