/**
 * `syncline/react/account-forms`: ready forms for sign-in, sign-up, password reset, second factors, passkeys and sessions.
 *
 * @module
 */
"use client";

export { AccountForms, type FormsProps, RequireSignIn } from "./account_forms.ts";
export { PasskeyList } from "./passkey_list.ts";
export { SecondFactorSettings } from "./second_factor_settings.ts";
export { AccountSettings, SessionList } from "./session_list.ts";
export { type AccountForm, type AccountFormProps, SignIn } from "./sign_in.ts";
export { ResetPassword, SignUp } from "./sign_up.ts";
export { AccountTexts, type FormTexts } from "./texts.ts";
