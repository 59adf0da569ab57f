/**
 * `syncline/react/presence`: rooms with the ephemeral state of connected clients as a React hook, beside `syncline/react`.
 *
 * @module
 */
"use client";

export { usePresence } from "./use_presence.ts";
