/** Runtime globals: open while the app loads, then constant, so that a call's patches fail and affect no later call. */
const { defineProperty, freeze, getOwnPropertyDescriptor } = Object;
const { ownKeys } = Reflect;

/** Recorded before app code is loaded. Globals added by the app are not frozen. */
let names: readonly PropertyKey[] = [];

/** Runtime classes that functions use in addition to the language's own. */
const CLASSES = [
  ...["AbortController", "AbortSignal", "Blob", "File", "FormData", "Headers", "Request", "Response"],
  ...["ReadableStream", "TransformStream", "WritableStream", "TextDecoderStream", "TextEncoderStream"],
  ...["URL", "URLSearchParams", "WebSocket"],
];

/** Runtime functions. Some are created lazily, like the classes. */
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

/** Records the globals. Called once, before app code is loaded. */
export function recordGlobals(): void {
  for (const name of [...CLASSES, ...FUNCTIONS]) {
    const property = getOwnPropertyDescriptor(globalThis, name);
    // Lazily created: replaces the getter by the value.
    if (property?.get === undefined) continue;
    const value: unknown = Reflect.get(globalThis, name);
    defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  }
  names = ownKeys(globalThis);
}

/** Makes the globals constant. Called once, after the app is loaded. */
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
