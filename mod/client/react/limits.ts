/** Every bound of the hooks. Units stand last in the names. */
export const reactLimits = {
  /** A suspended component's query stays live for this long after its result is there, until the component is mounted. */
  mountMs: 5_000,
  /** A query for which a component is suspended is given up after this long; a component that still waits asks again. */
  suspendedMs: 60_000,
  /** Pages of one list; each is a live query of its own, and a connection has room for 1,024 of them. */
  pagesMax: 256,
} as const;
