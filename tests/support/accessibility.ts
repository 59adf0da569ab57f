/** Checks pages with axe. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";

let axe: Promise<string> | null = null;

/** Rules that depend on colors. The others find the same in light and in dark theme. */
const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** Returns accessibility violations found by axe, one per line. */
export async function violations(
  page: Page,
  { colorsOnly = false }: { readonly colorsOnly?: boolean } = {},
): Promise<string[]> {
  await settle(page);
  const there = await page.evaluate(() => "axe" in globalThis);
  if (!there) {
    await page.evaluate(
      await (axe ??= Deno.readTextFile(new URL(import.meta.resolve("axe-core/axe.min.js")))),
    );
  }
  return await page.evaluate(async (rules) => {
    const { axe } = globalThis as never as {
      axe: {
        run(options: object): Promise<
          { violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }
        >;
      };
    };
    // Collects violations only.
    const { violations } = await axe.run({
      resultTypes: ["violations"],
      ...(rules !== null && { runOnly: rules }),
    });
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`
        .slice(0, 600)
    );
  }, colorsOnly ? COLOR_RULES : null);
}

/** Light and dark theme, on a desktop and on a phone. */
const appearances = [
  { name: "light", colorScheme: "light", width: 1280 },
  { name: "dark", colorScheme: "dark", width: 1280 },
  { name: "phone", colorScheme: "light", width: 390 },
  { name: "dark phone", colorScheme: "dark", width: 390 },
] as const;

/**
 * Checks the current state of a page with axe in light and dark theme, on a desktop and on a phone, without horizontal
 * scrolling. Calls `onPhone` while the page has the width of a phone.
 */
export async function checkAccessibility(
  page: Page,
  view: string,
  onPhone: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const before = page.viewportSize();
  for (const { name, colorScheme, width } of appearances) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await violations(page, { colorsOnly: colorScheme === "dark" }), [], `${view}, ${name}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view}, ${name}: the page scrolls horizontally`);
    if (name === "phone") await onPhone();
  }
  await page.emulateMedia({ colorScheme: "light" });
  if (before !== null) await page.setViewportSize(before);
}

/** Waits until a page has been drawn with its current size and theme, and transitions have ended. */
export async function settle(page: Page): Promise<void> {
  const size = page.viewportSize();
  // A new size reaches the page a moment later.
  if (size !== null) await page.waitForFunction((width) => innerWidth === width, size.width);
  await page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    await frame();
    await frame();
    const ending = document.getAnimations().filter((one) =>
      one.effect?.getComputedTiming().endTime !== Infinity
    );
    await Promise.allSettled(ending.map(({ finished }) => finished));
  });
}
