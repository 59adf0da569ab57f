/**
 * Freezes the intrinsics that app code shares with ours. They stay open while the app loads, because packages extend them and
 * inherit from them. Freezing costs nothing. Making properties constant one by one would disable engine optimizations and
 * make iteration ten times slower.
 */

const {
  defineProperty,
  freeze,
  getOwnPropertyDescriptor,
  getPrototypeOf,
  preventExtensions,
  setPrototypeOf,
} = Object;
const { deleteProperty, ownKeys } = Reflect;
const exit: (code: number) => never = Deno.exit;
const { error: printError } = console;

interface Intrinsic {
  readonly name: string;
  readonly object: object;
  /** Freezes, or only prevents extensions where the prototype above has its methods locked already (lockdown.ts). */
  readonly close: (object: object) => void;
  readonly above: object | null;
  readonly properties: readonly Property[];
}

type Property = readonly [key: PropertyKey, descriptor: PropertyDescriptor];

function intrinsic(name: string, object: object, close: Intrinsic["close"] = freeze): Intrinsic {
  return {
    name,
    object,
    close,
    above: getPrototypeOf(object) as object | null,
    properties: propertiesOf(object),
  };
}

function propertiesOf(object: object): readonly Property[] {
  return ownKeys(object).map((key): Property => [key, getOwnPropertyDescriptor(object, key) ?? {}]);
}

const prototypeOf = (value: object): object => getPrototypeOf(value) as object;
const arrayIterator = prototypeOf([].values());

const intrinsics: readonly Intrinsic[] = [
  intrinsic("Array.prototype", Array.prototype),
  intrinsic("Array", Array),
  intrinsic("the prototype of array iterators", arrayIterator),
  intrinsic("the prototype of map iterators", prototypeOf(new Map().values())),
  intrinsic("the prototype of set iterators", prototypeOf(new Set().values())),
  intrinsic("the prototype of string iterators", prototypeOf(""[Symbol.iterator]())),
  intrinsic("the prototype of iterators", prototypeOf(arrayIterator)),
  intrinsic("the prototype of generators", prototypeOf(prototypeOf((function* () {})()))),
  intrinsic("the prototype of async generators", prototypeOf(prototypeOf((async function* () {})()))),
  intrinsic("Promise.prototype", Promise.prototype),
  intrinsic("Promise", Promise),
  ...[Uint8Array, Uint32Array, Float32Array, Float64Array].map(({ name, prototype }) =>
    intrinsic(`${name}.prototype`, prototype, preventExtensions)
  ),
  intrinsic("the prototype of typed arrays", prototypeOf(Uint8Array.prototype), preventExtensions),
];

/** Called once the app is loaded. Keeps added methods, restores replaced ones. @throws TypeError for harmful additions. */
export function closeIntrinsics(): void {
  let fault = "";
  // By index, closing each before the next: iterators may be patched.
  for (let i = 0; i < intrinsics.length; i++) {
    const one = intrinsics[i];
    if (one === undefined) continue;
    const found = closeOne(one);
    if (fault === "") fault = found;
  }
  loaded = { methods: regExpMethods(), properties: propertiesOf(regExp), stacks: stackSettings() };
  if (fault !== "") throw new TypeError(`${fault}: calls that have nothing to do with it would break`);
}

/** Returns an error message, or "" if everything could stay. */
function closeOne({ name, object, close, above, properties }: Intrinsic): string {
  let fault = "";
  if (getPrototypeOf(object) !== above) {
    fault = `The prototype of ${name} cannot be changed`;
    setPrototypeOf(object, above);
  }
  restoreProperties(object, properties);
  const keys = ownKeys(object);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] ?? "";
    if (!isMet(key, above) || isAmong(key, properties)) continue;
    fault = `${String(key)} cannot be added to ${name}`;
    deleteProperty(object, key);
  }
  close(object);
  return fault;
}

/** Whether an addition affects code that does not use it: the language looks it up, or it shadows another property. */
function isMet(key: PropertyKey, above: object | null): boolean {
  return key === "toJSON" || key === "then" || key === Symbol.isConcatSpreadable ||
    Number(String(key)) >= 0 || (above !== null && above !== Function.prototype && key in above);
}

function isAmong(key: PropertyKey, properties: readonly Property[]): boolean {
  for (let i = 0; i < properties.length; i++) if (properties[i]?.[0] === key) return true;
  return false;
}

/** Restores properties. Throws for those made constant. */
function restoreProperties(object: object, properties: readonly Property[]): void {
  for (let i = 0; i < properties.length; i++) {
    const property = properties[i];
    if (property === undefined) continue;
    const key = property[0];
    const before = property[1];
    const now = getOwnPropertyDescriptor(object, key);
    if (now?.value === before.value && now?.get === before.get && now?.set === before.set) continue;
    defineProperty(object, key, before);
  }
}

const regExp = RegExp.prototype;

/** Compared one by one, which costs a call only a few nanoseconds. */
function regExpMethods() {
  return {
    constructor: regExp.constructor,
    exec: regExp.exec,
    test: regExp.test,
    match: regExp[Symbol.match],
    matchAll: regExp[Symbol.matchAll],
    replace: regExp[Symbol.replace],
    search: regExp[Symbol.search],
    split: regExp[Symbol.split],
  };
}

/** State of `RegExp.prototype` after the app was loaded. `null` before. */
let loaded:
  | {
    readonly methods: ReturnType<typeof regExpMethods>;
    readonly properties: readonly Property[];
    readonly stacks: readonly (PropertyDescriptor | undefined)[];
  }
  | null = null;

/** Properties of `Error` that control how stacks are created. */
const STACKS = ["prepareStackTrace", "stackTraceLimit"] as const;

function stackSettings(): (PropertyDescriptor | undefined)[] {
  return [getOwnPropertyDescriptor(Error, STACKS[0]), getOwnPropertyDescriptor(Error, STACKS[1])];
}

/** Restores them. Throws for those made constant. */
function mendStacks(before: readonly (PropertyDescriptor | undefined)[]): void {
  for (let i = 0; i < STACKS.length; i++) {
    const key = STACKS[i] ?? "";
    const now = getOwnPropertyDescriptor(Error, key);
    const was = before[i];
    if (now?.value === was?.value && now?.get === was?.get) continue;
    if (was !== undefined) defineProperty(Error, key, was);
    else if (!deleteProperty(Error, key)) throw new TypeError(`Error.${key} was made constant`);
  }
}

/** Reverts changes to stack settings and `RegExp.prototype`, too slow when locked. Ends the isolate if that fails. */
export function restoreLanguage(): void {
  if (loaded === null) return;
  const { methods, properties, stacks } = loaded;
  try {
    mendStacks(stacks);
  } catch (error) {
    printError(error);
    exit(1);
  }
  if (
    regExp.exec === methods.exec && regExp.test === methods.test &&
    regExp[Symbol.replace] === methods.replace &&
    regExp[Symbol.split] === methods.split && regExp[Symbol.match] === methods.match &&
    regExp[Symbol.matchAll] === methods.matchAll &&
    regExp[Symbol.search] === methods.search && regExp.constructor === methods.constructor
  ) return;
  try {
    restoreProperties(regExp, properties);
  } catch (error) {
    printError(error);
    exit(1);
  }
}
