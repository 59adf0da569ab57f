/** All attacks. */
import type { Scenario } from "../support/scenario.ts";
import { callScenarios } from "./calls_scenarios.ts";
import { connectionScenarios } from "./connections_scenarios.ts";
import { requestScenarios } from "./requests_scenarios.ts";
import { socketScenarios } from "./sockets_scenarios.ts";

export const attacks: readonly Scenario[] = [
  ...callScenarios,
  ...socketScenarios,
  ...connectionScenarios,
  ...requestScenarios,
];
