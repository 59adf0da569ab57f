// States of sign-ins started in this browser, in the format of the client (mod/client/accounts/flows.ts). Tokens in an
// address are accepted only with such a state.

const PREFIX = "syncline-flow ";
const LIFE_MS = 60_000;

/** Stores and returns a new state. */
export function beginFlow() {
  const state = Array.from(
    crypto.getRandomValues(new Uint8Array(16)),
    (byte) => byte.toString(16).padStart(2, "0"),
  );
  localStorage.setItem(PREFIX + state.join(""), String(Date.now() + LIFE_MS));
  return state.join("");
}

/** Consumes a state. Returns whether this browser had stored it. */
export function takeFlow(state) {
  const until = localStorage.getItem(PREFIX + state);
  localStorage.removeItem(PREFIX + state);
  return Number(until) > Date.now();
}
