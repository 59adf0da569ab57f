/** Checks pages with axe. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";

let axe: Promise<string> | null = null;

/** Returns accessibility violations found by axe, one per line. */
export async function violations(page: Page): Promise<string[]> {
  const there = await page.evaluate(() => "axe" in globalThis);
  if (!there) {
    await page.evaluate(
      await (axe ??= Deno.readTextFile(new URL(import.meta.resolve("axe-core/axe.min.js")))),
    );
  }
  return await page.evaluate(async () => {
    const { axe } = globalThis as never as {
      axe: {
        run(options: object): Promise<
          { violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }
        >;
      };
    };
    // Collects violations only.
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`
        .slice(0, 600)
    );
  });
}

/** Light and dark theme, on a desktop and on a phone. */
export const appearances = [
  { name: "light", colorScheme: "light", width: 1280 },
  { name: "dark", colorScheme: "dark", width: 1280 },
  { name: "phone", colorScheme: "light", width: 390 },
  { name: "dark phone", colorScheme: "dark", width: 390 },
] as const;

/** Checks the current state of a page with axe in each of {@linkcode appearances}, without horizontal scrolling. */
export async function checkAccessibility(page: Page, view: string): Promise<void> {
  const before = page.viewportSize();
  for (const { name, colorScheme, width } of appearances) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await violations(page), [], `${view}, ${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view}, ${name}: the page scrolls horizontally`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  if (before !== null) await page.setViewportSize(before);
}
