/** The condition of `filter`: an expression such as `q.eq(q.field("done"), false)`, or a predicate on documents. */
import { withHelp } from "../../../explained.ts";
import { compareValues } from "../../../engine/mod.ts";
import type { Doc, Value } from "../../../engine/types.ts";
import { inspected } from "./log_lines.ts";

type Evaluate = (doc: Doc) => unknown;

/** A value computed from a document. */
export class FilterExpression {
  readonly evaluate: Evaluate;

  constructor(evaluate: Evaluate) {
    this.evaluate = evaluate;
  }
}

function operand(value: unknown): Evaluate {
  return value instanceof FilterExpression ? value.evaluate : () => value;
}

function binary(combine: (left: unknown, right: unknown) => unknown) {
  return (left: unknown, right: unknown): FilterExpression => {
    const a = operand(left);
    const b = operand(right);
    return new FilterExpression((doc) => combine(a(doc), b(doc)));
  };
}

function arithmetic(combine: (left: number, right: number) => number) {
  return binary((left, right) => {
    if (typeof left !== "number" || typeof right !== "number") {
      throw new TypeError(
        `A filter can only calculate with numbers, not with ${inspected(left)} and ${inspected(right)}`,
      );
    }
    return combine(left, right);
  });
}

const builder = Object.freeze({
  field: (path: string): FilterExpression => new FilterExpression((doc) => fieldAt(doc, path)),
  eq: binary((left, right) => compared(left, right) === 0),
  neq: binary((left, right) => compared(left, right) !== 0),
  lt: binary((left, right) => compared(left, right) < 0),
  lte: binary((left, right) => compared(left, right) <= 0),
  gt: binary((left, right) => compared(left, right) > 0),
  gte: binary((left, right) => compared(left, right) >= 0),
  add: arithmetic((left, right) => left + right),
  sub: arithmetic((left, right) => left - right),
  mul: arithmetic((left, right) => left * right),
  div: arithmetic((left, right) => left / right),
  mod: arithmetic((left, right) => left % right),
  neg: (value: unknown): FilterExpression => arithmetic((left, right) => left - right)(0, value),
  and: (...values: unknown[]): FilterExpression => {
    const parts = values.map(operand);
    return new FilterExpression((doc) => parts.every((part) => part(doc) === true));
  },
  or: (...values: unknown[]): FilterExpression => {
    const parts = values.map(operand);
    return new FilterExpression((doc) => parts.some((part) => part(doc) === true));
  },
  not: (value: unknown): FilterExpression => {
    const part = operand(value);
    return new FilterExpression((doc) => part(doc) !== true);
  },
});

/** Returns the predicate of a condition. Calls it with the builder once: if no expression is returned, it is a predicate. */
export function filterPredicate(condition: unknown): (doc: Doc) => boolean {
  if (typeof condition !== "function") {
    throw new TypeError('filter() needs a function, such as (q) => q.eq(q.field("done"), false)');
  }
  let built: unknown;
  try {
    built = condition(builder);
  } catch {
    built = undefined;
  }
  if (built instanceof FilterExpression) {
    const { evaluate } = built;
    return (doc) => evaluate(doc) === true;
  }
  return (doc) => {
    const passes: unknown = condition(doc);
    if (passes instanceof Promise) {
      throw withHelp(new TypeError("The condition of filter() cannot be asynchronous"), "filter");
    }
    return Boolean(passes);
  };
}

function fieldAt(doc: Doc, path: string): Value | undefined {
  let value: Value | undefined = Object.hasOwn(doc, path) ? doc[path] : undefined;
  if (value !== undefined || !path.includes(".")) return value;
  value = doc;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = value[name];
  }
  return value;
}

/** Whether a value can be in a document, or is `undefined` for a missing field. */
function isValue(value: unknown): value is Value | undefined {
  switch (typeof value) {
    case "undefined":
    case "string":
    case "boolean":
      return true;
    case "number":
      return !Number.isNaN(value);
    case "object":
      return value === null || Array.isArray(value) ||
        Object.getPrototypeOf(value) === Object.prototype;
    default:
      return false;
  }
}

function compared(left: unknown, right: unknown): number {
  if (isValue(left) && isValue(right)) return compareValues(left, right);
  throw new TypeError(
    `A filter cannot compare ${inspected(isValue(left) ? right : left)}: only JSON values have an order`,
  );
}
