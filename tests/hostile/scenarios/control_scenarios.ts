/** The bystander's latency without an attack: the control of the other rows in the benchmark. */
import type { Scenario } from "../support/scenario.ts";

const QUIET_MS = 3_000;

/** Each uses a whole processor, like an endless call. */
const BURNERS = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export const controlScenarios: readonly Scenario[] = [
  {
    rule: "none",
    name: "no attack (control)",
    limits: null,
    attack: async () => {
      await pause(QUIET_MS);
      return "to compare with";
    },
  },
  {
    rule: "none",
    name: `no attack, ${BURNERS} other programs that each use a whole processor`,
    limits: null,
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
