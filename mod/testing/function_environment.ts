/**
 * The environment of functions in a test server: the test's clock, seeded randomness, a console that captures log lines, and
 * no network or timers in queries and mutations. Async context separates functions from the rest of the process, and the
 * globals are restored after the last server closes.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import {
  captureConsole,
  currentCall,
  frozenNow,
  isFailure,
  marked,
  markHandled,
  markUnhandled,
  runningAction,
  seededRandom,
} from "../functions/isolate/mod.ts";

/** Whether code runs in a query or mutation, or in an action with this clock. */
type ExecutionContext = { readonly in: "transaction" } | {
  readonly in: "action";
  readonly now: () => number;
};

const places = new AsyncLocalStorage<ExecutionContext>();

/** Runs a query or mutation. */
export function inTransaction<T>(run: () => T): T {
  return places.run({ in: "transaction" }, run);
}

/** Runs an action. */
export function inAction<T>(now: () => number, run: () => T): T {
  return places.run({ in: "action", now }, run);
}

/** The time as seen by the running function; `null` outside functions. */
function functionNow(): number | null {
  const place = places.getStore();
  if (place === undefined) return null;
  return place.in === "transaction" ? frozenNow() : place.now();
}

const transacting = () => places.getStore()?.in === "transaction";

let users = 0;
let restore: (() => void) | null = null;

/** Replaces the globals until every caller has released them. */
export function useFunctionEnvironment(): { release(): void } {
  users++;
  restore ??= install();
  return {
    release() {
      users--;
      if (users > 0) return;
      restore?.();
      restore = null;
    },
  };
}

const refused = [
  "fetch",
  "WebSocket",
  "EventSource",
  "setTimeout",
  "setInterval",
  "setImmediate",
] as const;

function install(): () => void {
  const undo: (() => void)[] = [];
  const replace = (target: object, { name, value }: { readonly name: string; readonly value: unknown }) => {
    const before = Object.getOwnPropertyDescriptor(target, name);
    if (before === undefined) return;
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
    undo.push(() => Object.defineProperty(target, name, before));
  };
  const RealDate = Date;
  replace(globalThis, {
    name: "Date",
    value: new Proxy(RealDate, {
      construct(target, args: unknown[], newTarget) {
        const now = args.length === 0 ? functionNow() : null;
        return Reflect.construct(target, now === null ? args : [now], newTarget) as Date;
      },
      apply(target) {
        const now = functionNow();
        return now === null ? target() : new target(now).toString();
      },
      get(target, property, receiver) {
        if (property === "now") return () => functionNow() ?? RealDate.now();
        return Reflect.get(target, property, receiver);
      },
    }),
  });
  const realRandom = Math.random;
  replace(Math, { name: "random", value: () => transacting() ? seededRandom() : realRandom() });
  const realPerformanceNow = performance.now.bind(performance);
  replace(Performance.prototype, {
    name: "now",
    value: () => {
      const now = functionNow();
      return now === null ? realPerformanceNow() : now - performance.timeOrigin;
    },
  });
  for (const name of ["getRandomValues", "randomUUID"] as const) {
    const real = Crypto.prototype[name] as (...args: unknown[]) => unknown;
    replace(Crypto.prototype, {
      name,
      value(this: Crypto, ...args: unknown[]): unknown {
        if (transacting()) marked();
        return Reflect.apply(real, this, args);
      },
    });
  }
  for (const name of refused) {
    const real: unknown = Reflect.get(globalThis, name);
    if (typeof real !== "function") continue;
    replace(globalThis, { name, value: refusedInTransactions(name, real) });
  }
  replace(globalThis, { name: "console", value: functionConsole(console) });
  for (
    const [type, listener] of Object.entries({ unhandledrejection: lost, rejectionhandled: markHandled })
  ) {
    addEventListener(type, listener as EventListener);
    undo.push(() => removeEventListener(type, listener as EventListener));
  }
  return () => {
    for (const step of undo.reverse()) step();
  };
}

/** While installed, an unhandled rejection from `ctx` fails its call instead of the test. */
function lost(event: PromiseRejectionEvent): void {
  const call = currentCall() ?? runningAction();
  if (call === null || call.logLines.taken || !isFailure(event.reason)) return;
  event.preventDefault();
  markUnhandled(call, event);
}

/** Wraps a function or class so that it throws in queries and mutations. */
function refusedInTransactions(name: string, real: object): unknown {
  const check = () => {
    if (!transacting()) return;
    throw new TypeError(`${name} is not available in queries and mutations: use it in an action`);
  };
  return new Proxy(real as (...args: unknown[]) => unknown, {
    apply(target, receiver: unknown, args) {
      check();
      return Reflect.apply(target, receiver, args);
    },
    construct(target, args, newTarget) {
      check();
      return Reflect.construct(target, args, newTarget) as object;
    },
  });
}

/** Prints as before and also captures what functions print as log lines of their call. */
function functionConsole(real: Console): Console {
  const captured = captureConsole(real, (level, values) => {
    const call = transacting() ? currentCall() : runningAction();
    call?.logLines.addConsole(level, values);
  });
  return new Proxy(real, {
    get(target, property) {
      const own: unknown = Reflect.get(target, property);
      const capturing: unknown = Reflect.get(captured, property);
      if (places.getStore() === undefined || typeof own !== "function" || typeof capturing !== "function") {
        return own;
      }
      return (...values: unknown[]) => {
        Reflect.apply(capturing, captured, values);
        Reflect.apply(own, target, values);
      };
    },
  });
}
