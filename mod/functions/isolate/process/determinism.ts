/**
 * Determinism of queries and mutations: `Date` and `performance.now()` are frozen, and `Math.random()` of a query is seeded by
 * path and arguments, so repeated runs return the same result. Reading either marks the call as nondeterministic. `crypto`
 * stays truly random, because tokens need that, and marks the call too.
 */
import { withHelp } from "../../../explained.ts";
import type { Call } from "../runs/call.ts";
import { currentCall } from "../runs/call.ts";

const RealDate = Date;
const realNow = Date.now;
const realRandom = Math.random;
const { construct } = Reflect;

export function marked(): Call | null {
  const call = currentCall();
  if (call !== null) call.nondeterministic = true;
  return call;
}

/** The clock of the current call. Marks it as nondeterministic. */
export function frozenNow(): number {
  return marked()?.at ?? realNow();
}

/** The next random number of the current call. Marks it as nondeterministic. */
export function seededRandom(): number {
  const call = marked();
  if (call === null || call.seed === null) return realRandom();
  call.random ??= generator(call.seed());
  return call.random();
}

/** The sfc32 generator, seeded by a string. */
function generator(seed: string): () => number {
  let a = 0x9e3779b9;
  let b = 0x243f6a88;
  let c = 0xb7e15162;
  let counter = 1;
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return (t >>> 0) / 2 ** 32;
  };
  for (let index = 0; index < seed.length; index++) {
    a = Math.imul(a ^ seed.charCodeAt(index), 0x85ebca6b);
    next();
  }
  for (let round = 0; round < 12; round++) next();
  return next;
}

/** A `Date` with a frozen clock. Works with `instanceof` and behaves the same with arguments. */
function frozenDate(): DateConstructor {
  const FrozenDate = function (this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new RealDate(frozenNow()).toString();
    return construct(RealDate, args.length === 0 ? [frozenNow()] : args, new.target);
  } as unknown as DateConstructor;
  Object.defineProperties(FrozenDate, {
    name: { value: "Date" },
    length: { value: 7 },
    prototype: { value: RealDate.prototype, writable: false },
    now: { value: frozenNow, writable: true, configurable: true },
    parse: { value: RealDate.parse, writable: true, configurable: true },
    UTC: { value: RealDate.UTC, writable: true, configurable: true },
  });
  Object.defineProperty(RealDate.prototype, "constructor", {
    value: FrozenDate,
    writable: true,
    configurable: true,
  });
  return FrozenDate;
}

/** Replaces clock and random generator. Called once in writers and readers, before app code is loaded. */
export function installDeterminism(): void {
  Object.defineProperty(globalThis, "Date", {
    value: frozenDate(),
    writable: false,
    enumerable: false,
    configurable: false,
  });
  Math.random = seededRandom;
  const { timeOrigin } = performance;
  Object.defineProperty(Performance.prototype, "now", {
    value: () => frozenNow() - timeOrigin,
    writable: false,
    configurable: false,
  });
  markRandomness(Crypto.prototype, ["getRandomValues", "randomUUID"]);
  markRandomness(SubtleCrypto.prototype, ["generateKey"]);
  freezeFormats();
  freezeTemporal();
}

/** Wraps methods so that they mark the call. */
function markRandomness(prototype: object, names: readonly string[]): void {
  for (const name of names) {
    const original: unknown = Reflect.get(prototype, name);
    if (typeof original !== "function") continue;
    Object.defineProperty(prototype, name, {
      value(this: unknown, ...args: unknown[]): unknown {
        marked();
        return Reflect.apply(original, this, args);
      },
      writable: false,
      configurable: false,
    });
  }
}

/** Without an argument, a date format reads the system clock. */
function freezeFormats(): void {
  const { prototype } = Intl.DateTimeFormat;
  const format = Object.getOwnPropertyDescriptor(prototype, "format")?.get;
  const { formatToParts } = prototype;
  if (format === undefined) return;
  Object.defineProperty(prototype, "format", {
    get(this: Intl.DateTimeFormat) {
      const original = Reflect.apply(format, this, []) as Intl.DateTimeFormat["format"];
      return (date?: Date | number) => original(date === undefined ? frozenNow() : date);
    },
    configurable: false,
  });
  Object.defineProperty(prototype, "formatToParts", {
    value(this: Intl.DateTimeFormat, date?: Date | number) {
      return Reflect.apply(formatToParts, this, [date === undefined ? frozenNow() : date]);
    },
    writable: false,
    configurable: false,
  });
}

/** `Temporal.Now` reads the system clock in its own ways, so it is disabled. */
function freezeTemporal(): void {
  const temporal = (globalThis as { readonly Temporal?: { readonly Now?: object } }).Temporal;
  if (temporal?.Now === undefined) return;
  for (const name of Object.getOwnPropertyNames(temporal.Now)) {
    Object.defineProperty(temporal.Now, name, {
      value: () => {
        throw withHelp(
          new TypeError(
            "Temporal.Now is not available in queries and mutations: use Temporal.Instant.fromEpochMilliseconds(Date.now())",
          ),
          "function_kind",
        );
      },
      writable: false,
      configurable: false,
    });
  }
}
