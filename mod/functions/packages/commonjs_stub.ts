/** Modules that stand in for CommonJS files, as addresses for the import map. */
import { commonJsKey } from "../wire/package_table.ts";

/** A module that runs a CommonJS file and exports what it exports, by these names and as a whole. */
export function commonJsStub(path: string, names: readonly string[]): string {
  const named = names.filter((name) => name !== "default" && name !== "module.exports");
  return address([
    `const m=globalThis[Symbol.for(${JSON.stringify(commonJsKey)})](${JSON.stringify(path)}),n=Object(m);`,
    ...named.map((name, index) => `const $${index}=n[${JSON.stringify(name)}];`),
    `export{${
      [
        "m as default",
        'm as "module.exports"',
        ...named.map((name, index) => `$${index} as ${JSON.stringify(name)}`),
      ]
        .join()
    }};`,
  ].join(""));
}

function address(source: string): string {
  // Only texts of paths and names can have other characters than these, and those stand in quotes.
  const plain = source.replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `data:text/javascript,${plain.replaceAll("%", "%25").replaceAll("#", "%23")}`;
}
