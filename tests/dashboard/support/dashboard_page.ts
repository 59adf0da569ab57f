/** A server and a browser with the dashboard, shared by the steps of a test file. */
import assert from "node:assert/strict";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { type StartOptions, startTestServer, type TestServer } from "../../auth/server/test_server.ts";
import { checkAccessibility, settle, violations } from "../../support/accessibility.ts";
import { PAGE_WAIT_MS } from "../../support/chromium.ts";
import { type Steps, stepsOf } from "../../support/page_steps.ts";
import { inChromium, sharedChromium } from "../../support/shared_chromium.ts";
import { found as foundWithin, until as untilWithin, type UntilOptions } from "../../support/waiting.ts";

export const admin = { email: "ada@example.com", password: "correct horse battery" };

/** Like the function of `support/waiting.ts`, but fails as early as other waits on a page. */
export function until(holds: () => boolean | Promise<boolean>, options: UntilOptions = {}): Promise<void> {
  return untilWithin(holds, { what: String(holds), timeoutMs: PAGE_WAIT_MS, ...options });
}

/** Like the function of `support/waiting.ts`, but fails as early as other waits on a page. */
export function found<Value>(
  look: () => Value | null | undefined | Promise<Value | null | undefined>,
  options: UntilOptions = {},
): Promise<Value> {
  return foundWithin(look, { timeoutMs: PAGE_WAIT_MS, ...options });
}

export interface DashboardPage {
  readonly server: TestServer;
  readonly context: BrowserContext;
  readonly page: Page;
  /** Opens a view by its address after `#/`. */
  go(view: string): Promise<void>;
  /** Waits until a text is shown. */
  waitForText(text: string | RegExp): Promise<void>;
  button(name: string | RegExp): Locator;
  /** Chooses an item of a menu. */
  choose(menu: string | RegExp, item: string | RegExp): Promise<void>;
  /** Presses keys, one after the other, each when the page is idle. */
  keys(...keys: string[]): Promise<void>;
  /** Waits until the page has rendered changes and run their effects, which for example listen for keys. */
  idle(): Promise<void>;
  /** Replaces the text of a JSON editor, and waits until the page has received it. */
  fillEditor(editor: Locator, text: string): Promise<void>;
  /** Changes the width of the page, and waits until it is drawn with that width. */
  resize(width: number): Promise<void>;
  /** Result of a signed-out call. */
  // deno-lint-ignore no-explicit-any -- results of many shapes
  call(path: string, args?: object, kind?: "mutation" | "query" | "action"): Promise<any>;
  /** Result of a call as the administrator. */
  // deno-lint-ignore no-explicit-any -- results of many shapes
  asAdmin(path: string, args?: object, kind?: "mutation" | "query" | "action"): Promise<any>;
  /** Creates an administrator, and opens a view in a browser context of its own, in which they are signed in. */
  openAs(account: { readonly email: string; readonly role: string }, view: string): Promise<Page>;
  /** Accessibility violations found by axe, one per line. */
  violations(): Promise<string[]>;
}

/** Registers a test on a server and a browser. The administrator is signed in unless `signedIn` is false. */
export function testDashboard(
  name: string,
  { signedIn = true, ...options }: StartOptions & { readonly signedIn?: boolean },
  paths: (dashboard: DashboardPage, t: Steps) => Promise<void>,
): void {
  Deno.test({
    ...inChromium(name),
    async fn(t) {
      await using server = await startTestServer({
        ...options,
        config: {
          executionLog: { keepMs: 86_400_000, bytesMax: 100_000_000 },
          ...options.config,
        },
      });
      const context = await (await sharedChromium()).newContext({
        viewport: { width: 1280, height: 800 },
      });
      try {
        const page = await context.newPage();
        const faults: string[] = [];
        page.on("pageerror", (error) => faults.push(error.message));
        page.on("response", async (response) => {
          // The browser's own message lacks the URL and the response.
          if (response.status() < 500) return;
          const fault = `${response.status()}: ${response.url()}`;
          const at = faults.push(fault) - 1;
          faults[at] = `${fault} ${await response.text().catch(() => "")}`;
        });
        page.on(
          "console",
          (message) =>
            message.type() === "error" && faults.push(`${message.text()} (${message.location().url})`),
        );
        const dashboard = dashboardPage({ server, context, page });
        if (signedIn) await setUp(dashboard);
        await paths(dashboard, stepsOf(t, context));
        // The browser logs rejected requests as errors; the page itself must log none.
        const own = faults.filter((fault) => !/status of 4\d\d|ERR_|WebSocket connection/.test(fault));
        assert.deepEqual(own, []);
      } finally {
        await context.close();
      }
    },
  });
}

async function setUp({ server, page }: DashboardPage): Promise<void> {
  await page.goto(server.setupLink ?? "");
  await page.getByLabel("Email address").fill(admin.email);
  await page.getByLabel("Password").fill(admin.password);
  await page.getByRole("button", { name: "Create administrator" }).click();
  await page.locator("#view").waitFor();
}

function dashboardPage(
  { server, context, page }: Pick<DashboardPage, "server" | "context" | "page">,
): DashboardPage {
  let bearer: Promise<string> | null = null;
  const token = async () => (await server.post("/api/auth/admin/signin", admin)).body.accessToken as string;
  const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
  const idle = () =>
    page.evaluate(() =>
      new Promise<void>((resolve) => requestIdleCallback(() => resolve(), { timeout: 1_000 }))
    );
  return {
    server,
    context,
    page,
    button,
    async go(view) {
      await page.goto(`${server.url}/_/#/${view}`);
      // The navigation and the view change together. Until then, the page shows the earlier view.
      const [name = ""] = view.split(/[/?]/);
      await page.locator(`nav a[aria-current=page][href="#/${name}"]`).waitFor({ state: "attached" });
      await page.locator("#view").waitFor();
    },
    waitForText: (text) => page.getByText(text, { exact: false }).first().waitFor(),
    async choose(menu, item) {
      await button(menu).click();
      await page.getByRole("menuitem", { name: item }).click();
    },
    async keys(...keys) {
      for (const key of keys) {
        await idle();
        await page.keyboard.press(key);
      }
    },
    idle,
    async fillEditor(editor, text) {
      await editor.focus();
      // Delete first: replacing highlighted text may make Chromium add inline styles, which the page's policy forbids.
      await this.keys("ControlOrMeta+a", "Backspace");
      await idle();
      await page.keyboard.insertText(text);
      // The form receives the text a moment after the editor.
      await idle();
    },
    resize: (width) => resize(page, width),
    call: async (path, args = {}, kind = "mutation") =>
      (await server.post(`/api/${kind}`, { path, args })).body.value,
    async asAdmin(path, args = {}, kind = "mutation") {
      const answer = await server.post(`/api/${kind}`, { path, args }, {
        bearer: await (bearer ??= token()),
      });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return answer.body.value;
    },
    async openAs({ email, role }, view) {
      const { password } = admin;
      await this.asAdmin("_admin/administrators:create", { email, password, role }, "action");
      const other = await (await context.browser()?.newContext({ viewport: { width: 1280, height: 800 } }))
        ?.newPage();
      assert.ok(other);
      await other.goto(`${server.url}/_/#/${view}`);
      await other.getByLabel("Email address").fill(email);
      await other.getByLabel("Password").fill(password);
      await other.getByRole("button", { name: "Sign in", exact: true }).click();
      await other.locator(".account").getByText(email).waitFor();
      return other;
    },
    violations: () => violations(page),
  };
}

async function resize(page: Page, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 800 });
  await settle(page);
}

/** Checks that a control is disabled for the signed-in administrator, and says which roles may use it. */
export async function checkRefused(control: Locator, roles: "editors and owners" | "owners"): Promise<void> {
  await until(async () => await control.getAttribute("title") === `Only ${roles} may do this`, {
    what: `${control}: only ${roles} may use it`,
  });
  assert.ok(await control.isDisabled(), `${control} is enabled`);
}

/** Checks views with axe in light and dark theme, on a desktop and on a phone. */
export async function checkAppearances({ page, go }: DashboardPage, views: readonly string[]): Promise<void> {
  for (const view of views) {
    await go(view);
    await page.waitForFunction(() => !document.querySelector("#view")?.textContent?.includes("Loading…"));
    await checkAccessibility(page, view, () => checkTables(page, view));
    // Between a phone and a desktop, cells must not be covered by the actions of their row.
    await resize(page, 1024);
    const covered = await page.locator(".table[data-actions]").evaluateAll((all) =>
      all.filter((one) => one.scrollWidth > (one.parentElement?.clientWidth ?? 0))
        .map((one) => one.textContent?.slice(0, 80))
    );
    assert.deepEqual(covered, [], `${view}: actions cover cells`);
    const broken = await page.locator("#view time").evaluateAll((all) =>
      all.filter((one) => one.getClientRects().length > 1).map((one) => one.textContent)
    );
    assert.deepEqual(broken, [], `${view}: times span several lines`);
    await resize(page, 1280);
  }
}

/** Checks that tables fit on a phone, and that the titles of columns do not cover the values of cards. */
async function checkTables(page: Page, view: string): Promise<void> {
  const wide = await page.locator(".table-scroll").evaluateAll((all) =>
    all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent?.slice(0, 80))
  );
  assert.deepEqual(wide, [], `${view}: a table scrolls horizontally on a phone`);
  const covered = await page.locator(".table[data-cards] td").evaluateAll((all) =>
    all.filter((cell) => {
      const title = getComputedStyle(cell, "::before");
      return title.content !== "none" &&
        parseFloat(getComputedStyle(cell).paddingLeft) < parseFloat(title.width);
    }).map((cell) => cell.textContent)
  );
  assert.deepEqual(covered, [], `${view}: the title of a column covers a value on a phone`);
}

/** Checks the open dialog or sheet with axe in light theme, and in dark theme on a phone. */
export async function checkDialog({ page, violations }: DashboardPage, name: string): Promise<void> {
  await page.getByRole("dialog").first().waitFor();
  assert.deepEqual(await violations(), [], `${name}, light`);
  await page.emulateMedia({ colorScheme: "dark" });
  await resize(page, 390);
  assert.deepEqual(await violations(), [], `${name}, dark phone`);
  const wide = await page.evaluate(() =>
    [...document.querySelectorAll("[role=dialog]")].filter((one) => {
      const { left, right } = one.getBoundingClientRect();
      return left < 0 || right > innerWidth || one.scrollWidth > one.clientWidth;
    }).length
  );
  assert.equal(wide, 0, `${name}: the dialog does not fit on a phone`);
  await page.emulateMedia({ colorScheme: "light" });
  await resize(page, 1280);
}
