/** Limits of the hooks. Units are the last part of each name. */
export const reactLimits = {
  /** How long a suspended component's query stays live after its result arrived, until the component is mounted. */
  mountMs: 5_000,
  /** How long a query stays live for a suspended component; a component that still waits subscribes again. */
  suspendedMs: 60_000,
} as const;
