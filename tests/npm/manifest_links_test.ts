/** Links of the npm packages to the repository that they are built from. */
import assert from "node:assert/strict";
import { links } from "../../mod/npm/build/manifests.ts";

Deno.test("packages link to the repository of their remote, in each form of its address", () => {
  const expected = {
    homepage: "https://git.example.com/team/syncline#readme",
    repository: { type: "git", url: "git+https://git.example.com/team/syncline.git" },
    bugs: { url: "https://git.example.com/team/syncline/issues" },
  };
  for (
    const remote of [
      "https://git.example.com/team/syncline",
      "https://git.example.com/team/syncline.git",
      "git@git.example.com:team/syncline.git",
      "ssh://git@git.example.com/team/syncline.git",
    ]
  ) assert.deepEqual(links(remote), expected, remote);
});

Deno.test("packages built from a copy without a remote link to npm", () => {
  const page = { homepage: "https://www.npmjs.com/package/syncline" };
  assert.deepEqual(links(null), page);
  assert.deepEqual(links("/srv/git/syncline"), page);
});
