/** The presets by name. A new preset needs a line here. */
import type { Preset } from "../preset.ts";
import { apple } from "./apple.ts";
import { discord, github } from "./oauth.ts";
import { gitlab, google, microsoft, oidc } from "./oidc.ts";

// Each preset validates its own settings.
export const presets: ReadonlyMap<string, Preset> = new Map(
  Object.entries({ apple, discord, github, gitlab, google, microsoft, oidc }) as [string, Preset][],
);
