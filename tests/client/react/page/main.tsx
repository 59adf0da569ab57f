/** The scenarios as the tests call them: `run(name, options)` on the page. */
import { ownTokens, signing } from "./accounts.tsx";
import { calls, optimistic } from "./calls.tsx";
import { secondFactor } from "./second_factor.tsx";
import { hydrated } from "./hydrated.tsx";
import { foreign, identity, random } from "./pages.tsx";
import { connection, counted, failing, reported, several, suspending } from "./queries.tsx";

const scenarios = {
  calls,
  connection,
  counted,
  failing,
  foreign,
  hydrated,
  identity,
  optimistic,
  ownTokens,
  random,
  secondFactor,
  several,
  signing,
  suspending,
  reported,
};

export type Scenarios = typeof scenarios;

(globalThis as { run?: unknown }).run = (name: keyof Scenarios, options: never) => scenarios[name](options);
