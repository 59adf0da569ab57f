/** Reference of a public module, from the declarations and docstrings of its exports. */
import ts from "typescript";

/** Renders the exports of a module as Markdown: functions and classes first, then types. */
export class ApiReference {
  readonly #program: ts.Program;
  readonly #printed = new Set<string>();

  /** @param entries Paths of all modules that will be rendered. */
  constructor(entries: readonly string[]) {
    this.#program = ts.createProgram([...entries], {
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      allowImportingTsExtensions: true,
      noEmit: true,
      skipLibCheck: true,
      types: [],
    });
  }

  /** Exports that an earlier module had are left out. */
  render(entry: string): string {
    const checker = this.#program.getTypeChecker();
    const file = this.#program.getSourceFile(entry);
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    if (module === undefined) throw new TypeError(`Cannot read the module ${entry}`);
    const values: string[] = [];
    const types: string[] = [];
    for (const exported of checker.getExportsOfModule(module)) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      if (this.#printed.has(exported.name)) continue;
      this.#printed.add(exported.name);
      const declarations = symbol.declarations ?? [];
      if (declarations.length === 0) throw new TypeError(`Cannot find the declaration of ${exported.name}`);
      const isType = declarations.every((node) =>
        ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
      );
      (isType ? types : values).push(renderSymbol(exported.name, declarations));
    }
    return [...values, ...types].join("\n");
  }
}

function renderSymbol(name: string, declarations: readonly ts.Declaration[]): string {
  // The implementation of an overloaded function is not public.
  const overloads = declarations.filter((node) => !ts.isFunctionDeclaration(node) || node.body === undefined);
  const shown = overloads.length > 0 ? overloads : declarations;
  const code = shown.map(signatureOf).join("\n");
  const docs = shown.map(docsOf).find((text) => text !== "") ?? "";
  return `### ${name}\n\n${docs}\n\`\`\`typescript\n${code}\n\`\`\`\n`;
}

/** The docstring as Markdown, with its tags as a list. */
function docsOf(node: ts.Node): string {
  const owner = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  const docs = (owner as { jsDoc?: ts.JSDoc[] }).jsDoc?.at(-1);
  if (docs === undefined) return "";
  const lines = [plain(ts.getTextOfJSDocComment(docs.comment) ?? ""), ""];
  const examples: string[] = [];
  for (const tag of docs.tags ?? []) {
    const text = plain(ts.getTextOfJSDocComment(tag.comment) ?? "").replace(/^- /, "");
    if (tag.tagName.text === "example") {
      examples.push(text.replaceAll(/^```tsx?$/gm, "```typescript"), "");
    } else if (ts.isJSDocParameterTag(tag)) {
      lines.push(`- \`${tag.name.getText()}\`: ${text}`);
    } else if (tag.tagName.text !== "module") {
      lines.push(`- ${tag.tagName.text[0]?.toUpperCase()}${tag.tagName.text.slice(1)}: ${text}`);
    }
  }
  return `${[...lines, "", ...examples].join("\n").trim()}\n`;
}

function plain(text: string): string {
  return text.replaceAll(/\{@link(?:code|plain)?\s+([^}|]+?)\s*\}/g, "`$1`").trimEnd();
}

/** The declaration without bodies and private members. */
function signatureOf(node: ts.Declaration): string {
  if (ts.isFunctionDeclaration(node)) return headOf(node);
  if (ts.isClassDeclaration(node)) return classOf(node);
  if (ts.isVariableDeclaration(node)) {
    const type = node.type === undefined ? "" : `: ${node.type.getText()}`;
    return `const ${node.name.getText()}${type}`;
  }
  return withoutExport(plain(node.getText()));
}

function classOf(node: ts.ClassDeclaration): string {
  const heritage = (node.heritageClauses ?? []).map((clause) => ` ${clause.getText()}`).join("");
  const members = node.members.filter(isPublic).map((member) => {
    const docs = (member as { jsDoc?: ts.JSDoc[] }).jsDoc?.at(-1)?.getText();
    return `${docs === undefined ? "" : `  ${docs}\n`}  ${headOf(member)};`;
  });
  return `class ${node.name?.text}${heritage} {\n${plain(members.join("\n"))}\n}`;
}

function isPublic(member: ts.ClassElement): boolean {
  if (member.name !== undefined && ts.isPrivateIdentifier(member.name)) return false;
  if (ts.isClassStaticBlockDeclaration(member)) return false;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected | ts.ModifierFlags.Override;
  return (ts.getCombinedModifierFlags(member) & hidden) === 0;
}

/** The text of a declaration up to its body or initial value. */
function headOf(node: ts.Node): string {
  const { body, initializer } = node as { body?: ts.Node; initializer?: ts.Node };
  const text = node.getSourceFile().text;
  const end = body?.getStart() ?? initializer?.getStart() ?? node.getEnd();
  return withoutExport(text.slice(node.getStart(), end)).replace(/^async /, "").trim().replace(/[=;]$/, "")
    .trim();
}

function withoutExport(text: string): string {
  return text.replace(/^export (?:default )?(?:declare )?/, "");
}
