/**
 * `syncline/react-native`: connects a client to the state of the app, and stores its tokens in the keychain. It imports nothing: the
 * app passes the modules of React Native or Expo. The hooks of `syncline/react` work unchanged. Import a polyfill of
 * `crypto.getRandomValues` before the client, such as `react-native-get-random-values`.
 *
 * @module
 */
export { type AppStateLike, followAppState } from "./app_state.ts";
export { type SecureStoreLike, secureTokens } from "./secure_tokens.ts";
