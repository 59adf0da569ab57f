import solid from "vite-plugin-solid";
import { defineConfig } from "vitest/config";

/** Tests run in Node. The default of the plugin is jsdom, which is not installed. */
export default defineConfig({ plugins: [solid()], test: { environment: "node" } });
