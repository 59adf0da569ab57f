/** Light or dark theme: the system's unless a choice is stored. */
const KEY = "syncline.theme";

type Theme = "light" | "dark";

function chosen(): Theme | null {
  const theme = localStorage.getItem(KEY);
  return theme === "light" || theme === "dark" ? theme : null;
}

export function applyTheme(theme: Theme | null = chosen()): void {
  if (theme === null) delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function toggleTheme(): void {
  const dark =
    (chosen() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const next = dark ? "light" : "dark";
  localStorage.setItem(KEY, next);
  applyTheme(next);
}
