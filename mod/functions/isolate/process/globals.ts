/**
 * The globals of the runtime. Packages may put others in their place while the app is loaded; after that they are what they
 * are, so that a call which patches `fetch` or a class of it fails, instead of those that come after it.
 */
const { defineProperty, freeze, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;

/** Set before app code is loaded: what it adds stays its own. */
let names: readonly PropertyKey[] = [];

/** Classes whose objects functions work with beside the language's own. */
const CLASSES = [
  ...["AbortController", "AbortSignal", "Blob", "File", "FormData", "Headers", "Request", "Response"],
  ...["ReadableStream", "TransformStream", "WritableStream", "TextDecoderStream", "TextEncoderStream"],
  ...["URL", "URLSearchParams", "WebSocket"],
];

/** Functions of the runtime that some globals make when they are first asked for, as they do the classes. */
const FUNCTIONS = [
  ...[
    "fetch",
    "setTimeout",
    "setInterval",
    "setImmediate",
    "clearTimeout",
    "clearInterval",
    "clearImmediate",
  ],
  ...["crypto", "atob", "btoa", "performance", "queueMicrotask", "structuredClone"],
];

/** Called once, before app code is loaded. */
export function noteGlobals(): void {
  for (const name of [...CLASSES, ...FUNCTIONS]) {
    const property = getOwnPropertyDescriptor(globalThis, name);
    // Some are made when they are first asked for.
    if (property?.get === undefined) continue;
    const value: unknown = Reflect.get(globalThis, name);
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }
  names = ownKeys(globalThis);
}

/** Called once, when the app is loaded. */
export function closeGlobals(): void {
  for (const name of names) {
    const property = getOwnPropertyDescriptor(globalThis, name);
    if (property?.configurable !== true || !("value" in property)) continue;
    defineProperty(globalThis, name, { writable: false, configurable: false });
  }
  for (const name of CLASSES) {
    const found = getOwnPropertyDescriptor(globalThis, name)?.value as unknown;
    if (typeof found !== "function") continue;
    freeze(found);
    freeze(found.prototype);
  }
}
