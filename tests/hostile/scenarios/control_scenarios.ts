/** The bystander's wait without an attack, for the benchmark: the control of the other rows. */
import type { Scenario } from "../support/scenario.ts";

const QUIET_MS = 3_000;

/** Each takes a processor, as a call that never ends does. */
const BURNERS = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export const controlScenarios: readonly Scenario[] = [
  {
    rule: "none",
    name: "nobody else: the control",
    mayWait: null,
    attack: async () => {
      await pause(QUIET_MS);
      return "to compare with";
    },
  },
  {
    rule: "none",
    name: `nobody else, and ${BURNERS} programs that take a processor each`,
    mayWait: null,
    isControl: true,
    attack: async () => {
      const burners = Array.from(
        { length: BURNERS },
        () => new Deno.Command("sh", { args: ["-c", "while :; do :; done"] }).spawn(),
      );
      try {
        await pause(QUIET_MS);
      } finally {
        for (const burner of burners) burner.kill("SIGKILL");
        await Promise.all(burners.map(({ status }) => status));
      }
      return "to compare with";
    },
  },
];
