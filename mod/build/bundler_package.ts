/** Names the package of the bundler for `needed_packages.ts`. The server starts its program and loads none of its modules. */
import "esbuild";
