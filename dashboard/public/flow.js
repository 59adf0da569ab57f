// Sign-ins that this browser began, noted as the client notes them (mod/client/accounts/flows.ts): it takes tokens from
// an address only beside the state of one.

const PREFIX = "syncline-flow ";
const LIFE_MS = 60_000;

/** Notes that a sign-in begins. Returns its state. */
export function beginFlow() {
  const state = Array.from(
    crypto.getRandomValues(new Uint8Array(16)),
    (byte) => byte.toString(16).padStart(2, "0"),
  );
  localStorage.setItem(PREFIX + state.join(""), String(Date.now() + LIFE_MS));
  return state.join("");
}

/** Returns whether this browser began the sign-in with this state, and forgets it. */
export function takeFlow(state) {
  const until = localStorage.getItem(PREFIX + state);
  localStorage.removeItem(PREFIX + state);
  return Number(until) > Date.now();
}
