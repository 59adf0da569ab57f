/** The presets by name. A new preset is a new file and a line here. */
import type { Preset } from "../preset.ts";
import { apple } from "./apple.ts";
import { discord } from "./discord.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { google } from "./google.ts";
import { microsoft } from "./microsoft.ts";
import { oidc } from "./oidc.ts";

// Each preset validates its own settings.
export const presets: ReadonlyMap<string, Preset> = new Map(
  Object.entries({ apple, discord, github, gitlab, google, microsoft, oidc }) as [string, Preset][],
);
