/**
 * A page that is driven by the developer tools alone. Playwright keeps its own pages looking visible and active, so that
 * they can neither be hidden nor frozen.
 */
import assert from "node:assert/strict";
import type { Browser, CDPSession } from "playwright-core";
import { PAGE_WAIT_MS } from "../../../support/chromium.ts";
import { pause, until } from "../../../support/waiting.ts";

interface Reply {
  readonly id?: number;
  readonly error?: { readonly message: string };
  readonly result?: unknown;
}

interface Evaluated {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: {
    readonly text: string;
    readonly exception?: { readonly description?: string };
  };
}

export class BarePage {
  readonly #tools: CDPSession;
  readonly #sessionId: string;
  readonly #replies = new Map<number, (reply: Reply) => void>();
  #lastId = 0;

  private constructor(tools: CDPSession, sessionId: string) {
    this.#tools = tools;
    this.#sessionId = sessionId;
    tools.on("Target.receivedMessageFromTarget", ({ message }) => {
      const reply = JSON.parse(message) as Reply;
      if (reply.id === undefined) return;
      this.#replies.get(reply.id)?.(reply);
      this.#replies.delete(reply.id);
    });
  }

  /** Opens an address and waits until it is loaded. */
  static async open(browser: Browser, url: string): Promise<BarePage> {
    const tools = await browser.newBrowserCDPSession();
    const { targetId } = await tools.send("Target.createTarget", { url });
    const { sessionId } = await tools.send("Target.attachToTarget", { targetId, flatten: false });
    const page = new BarePage(tools, sessionId);
    const isLoaded = (href: string) => location.href === href && document.readyState === "complete";
    // A new page shows about:blank first. Evaluations fail while it navigates away from that.
    let failure: unknown;
    await until(() => page.evaluate(isLoaded, url).catch((error) => (failure = error, false)), {
      what: () => `${url} is loaded; the last failure was ${failure}`,
      timeoutMs: PAGE_WAIT_MS,
    });
    return page;
  }

  /** Sends a command of the developer tools' protocol to the page. */
  async send(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.#lastId;
    const reply = new Promise<Reply>((resolve) => this.#replies.set(id, resolve));
    const message = JSON.stringify({ id, method, params });
    await this.#tools.send("Target.sendMessageToTarget", { sessionId: this.#sessionId, message });
    const { error, result } = await reply;
    assert(error === undefined, `${method}: ${error?.message}`);
    return result;
  }

  /** Runs a function in the page, also while that is frozen. */
  async evaluate<Arg, Result>(work: (arg: Arg) => Result | Promise<Result>, arg: Arg): Promise<Result> {
    const expression = `(${work})(${JSON.stringify(arg)})`;
    const evaluated = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    const { result, exceptionDetails } = evaluated as Evaluated;
    assert(
      exceptionDetails === undefined,
      exceptionDetails?.exception?.description ?? exceptionDetails?.text,
    );
    return result.value as Result;
  }

  /** Waits until a condition is true in the page. */
  async until<Arg>(holds: (arg: Arg) => boolean, arg: Arg): Promise<void> {
    const endAt = performance.now() + PAGE_WAIT_MS;
    while (!await this.evaluate(holds, arg)) {
      assert(performance.now() < endAt, `In the page it did not come to be that ${holds}`);
      await pause(10);
    }
  }
}
