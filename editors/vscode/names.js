// SPDX-License-Identifier: Apache-2.0
// What the extension reads from a Python file: which function a line is in, and the name under which Python imports it.
"use strict";
const path = require("path");

/** The name of the function at the top level of a file around a line (from 0), or the first one after it; null if none. */
function functionAt(lines, line) {
  let last = null;
  for (let k = 0; k < lines.length; k++) {
    const found = /^(?:async\s+)?def\s+([A-Za-z_]\w*)\s*[([]/.exec(lines[k]);
    if (found) {
      if (k > line && last) break;
      last = found[1];
      if (k > line) break;
    } else if (k <= line && /^[^\s#@)\]}]/.test(lines[k])) last = null;       // the function before has ended
  }
  return last;
}

/** {folder, module} of a file: the folder that has its outermost package, and its dotted name; has(path): is a file there? */
function moduleOf(file, has) {
  let folder = path.dirname(file);
  const parts = [path.basename(file, ".py")];
  if (parts[0] === "__init__") parts.pop();
  while (has(path.join(folder, "__init__.py")) && path.dirname(folder) !== folder) {
    parts.unshift(path.basename(folder));
    folder = path.dirname(folder);
  }
  const named = parts.length > 0 && parts.every(part => /^[A-Za-z_]\w*$/.test(part));
  return named ? {folder, module: parts.join(".")} : null;
}

/** The address of a live page in a line of what the command prints; null in another line. */
function addressIn(line) {
  return /^http:\/\/127\.0\.0\.1:\d{1,5}\/[\w-]+\/$/.test(line.trim()) ? line.trim() : null;
}

module.exports = {addressIn, functionAt, moduleOf};
