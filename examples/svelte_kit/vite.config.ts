import adapter from "@sveltejs/adapter-node";
import { sveltekit } from "@sveltejs/kit/vite";
import { defineConfig } from "vite";

/** The page imports `functions/_generated.ts`, which the development server must be allowed to serve. */
export default defineConfig({
  plugins: [sveltekit({ adapter: adapter() })],
  server: { fs: { allow: ["functions"] } },
});
