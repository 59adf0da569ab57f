/**
 * `syncline/react/streams`: the output of an action in components while it is written, beside `syncline/react`.
 *
 * @module
 */
"use client";

export { type StreamText, useStreamText } from "./use_stream_text.ts";
