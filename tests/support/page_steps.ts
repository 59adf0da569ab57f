/** Steps of a test on pages of a browser. */
import type { BrowserContext } from "playwright-core";

/** Time after which a step has failed, even if it waits for something that has no timeout. */
const STEP_MS = 2 * 60_000;
/** Time to read what a page shows after a failure, and how much of it an error contains. */
const SHOWN_MS = 5_000;
const SHOWN_CHARS = 2_000;

type StepFunction = () => void | Promise<void>;

/** Steps of a test. The first one that fails ends the test, because later steps depend on its state. */
export interface Steps {
  step(name: string, fn: StepFunction): Promise<void>;
  /** A step that is ignored, for example because it needs a program that is not installed, does not end the test. */
  step(
    definition: { readonly name: string; readonly ignore?: boolean; readonly fn: StepFunction },
  ): Promise<void>;
}

/** Runs steps whose errors contain what the pages of `context` show. */
export function stepsOf(t: Deno.TestContext, context: BrowserContext): Steps {
  return {
    async step(
      definition: string | { readonly name: string; readonly ignore?: boolean; readonly fn: StepFunction },
      given: StepFunction = () => {},
    ) {
      const { name, ignore = false, fn } = typeof definition === "string"
        ? { name: definition, fn: given }
        : definition;
      const passed = await t.step({
        name,
        ignore,
        async fn() {
          try {
            await withinStep(fn);
          } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            throw new Error(`${message}\n${await shown(context)}`, { cause: error });
          }
        },
      });
      if (!passed && !ignore) throw new Error(`Later steps depend on "${name}", which failed.`);
    },
  };
}

async function withinStep(fn: StepFunction): Promise<void> {
  const expired = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => expired.reject(new Error(`The step has not ended after ${STEP_MS} ms.`)),
    STEP_MS,
  );
  try {
    await Promise.race([fn(), expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Addresses and texts of the pages of a browser, for the error of a step. */
async function shown(context: BrowserContext): Promise<string> {
  const texts = await Promise.all(
    context.pages().map(async (page) => {
      const text = await page.locator("body").innerText({ timeout: SHOWN_MS })
        .catch((error) => `(not readable: ${error.message})`);
      return `${page.url()} shows:\n${text.slice(0, SHOWN_CHARS)}`;
    }),
  );
  return texts.join("\n");
}
