/** The presets by name. One more is one more file and one line here. */
import type { Preset } from "../preset.ts";
import { apple } from "./apple.ts";
import { discord } from "./discord.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { google } from "./google.ts";
import { microsoft } from "./microsoft.ts";
import { oidc } from "./oidc.ts";

// Which settings a preset takes is known to itself only.
export const presets: ReadonlyMap<string, Preset> = new Map(
  Object.entries({ apple, discord, github, gitlab, google, microsoft, oidc }) as [string, Preset][],
);
