/**
 * `syncline/streams`: reads the output of an action while it is written. Browser-safe, and apart from the core so that apps without it
 * do not load it.
 *
 * @module
 */
export { readStream, type ReadStreamOptions, readText, StreamError } from "./read_stream.ts";
