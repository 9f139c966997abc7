// SPDX-License-Identifier: Apache-2.0
// Prints the name, the version and the licence of each package that is bundled: all that are installed but the bundler.
import {existsSync, readFileSync} from "node:fs";

const packages = JSON.parse(readFileSync("package-lock.json", "utf8")).packages;
const texts = new Map();
for (const [path, {version, license, dev}] of Object.entries(packages)) {
  if (!path || dev) continue;
  const file = ["LICENSE", "LICENSE.md", "LICENCE"].map(name => `${path}/${name}`).find(existsSync);
  if (!file) throw new Error(`${path} (${license}) has no file with its licence`);
  const text = readFileSync(file, "utf8").trim();
  const named = `${path.replace("node_modules/", "")} ${version} (${license})`;
  texts.set(text, [...(texts.get(text) ?? []), named]);
}
console.log("codemirror.js is bundled from the packages below, each under the licence that follows its name.\n");
for (const [text, names] of texts) console.log(`${names.join("\n")}\n\n${text}\n\n${"-".repeat(80)}\n`);
