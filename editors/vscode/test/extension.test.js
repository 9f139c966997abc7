// SPDX-License-Identifier: Apache-2.0
// The extension against stand-ins of the editor's objects and a real `gradscribe live`; the interpreter is GRADSCRIBE_PYTHON or
// python3.
"use strict";
const assert = require("node:assert");
const {spawnSync} = require("child_process");
const fs = require("fs");
const Module = require("module");
const os = require("os");
const path = require("path");
const test = require("node:test");

const python = process.env.GRADSCRIBE_PYTHON || "python3";
const without = spawnSync(python, ["-c", "import gradscribe"]).status !== 0 && `${python} has no Gradscribe`;
const TEXT = "import numpy as np\n\n\ndef loss(w, x):\n    return np.sum((x * w) ** 2)\n";

function standIn(file) {
  const commands = new Map(), panels = [], errors = [], opened = [];
  const document = {languageId: "python", fileName: file, uri: {scheme: "file"}, getText: () => TEXT, lineCount: 5,
    lineAt: line => ({range: line})};
  const editor = {document, selection: {active: {line: 4}}, revealRange() {}};
  const ignored = {dispose() {}};
  return {
    commands, panels, errors, opened,
    vscode: {
      commands: {registerCommand: (name, run) => { commands.set(name, run); return ignored; }},
      env: {asExternalUri: async uri => uri}, extensions: {getExtension: () => undefined},
      Selection: class { constructor(line) { this.line = line; } }, TextEditorRevealType: {}, ViewColumn: {Beside: -2, One: 1},
      Uri: {parse: text => {
        const url = new URL(text);
        return {scheme: "http", authority: url.host, toString: () => text};
      }},
      window: {
        activeTextEditor: editor, visibleTextEditors: [editor],
        createOutputChannel: () => ({append() {}, appendLine() {}, show() {}, dispose() {}}),
        createWebviewPanel() {
          const panel = {closed: [], received: [], dispose() { this.closed.forEach(f => f()); }, reveal() {},
            onDidDispose(f) { this.closed.push(f); }, webview: {posted: [], postMessage(m) { this.posted.push(m); },
              onDidReceiveMessage(f) { panel.received.push(f); }}};
          panels.push(panel);
          return panel;
        },
        onDidChangeTextEditorSelection: f => { commands.set("selection", f); return ignored; },
        showErrorMessage: text => errors.push(text), showInputBox: async () => "float64[3], float64[3]",
        showTextDocument: async () => { opened.push(editor); return editor; },
      },
      workspace: {getConfiguration: () => ({get: () => python}), openTextDocument: async () => document},
    },
  };
}

function loaded(vscode) {
  const load = Module._load;
  Module._load = (name, ...rest) => name === "vscode" ? vscode : load(name, ...rest);
  try {
    delete require.cache[require.resolve("../extension")];
    return require("../extension");
  } finally {
    Module._load = load;
  }
}

test("a page is shown, linked with the editor, and ends with its panel", {skip: without, timeout: 120_000}, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "gradscribe"));
  const file = path.join(folder, "live_in_editor.py");
  fs.writeFileSync(file, TEXT);
  const {vscode, commands, panels, errors, opened} = standIn(file);
  const extension = loaded(vscode);
  extension.activate({subscriptions: []});
  await commands.get("gradscribe.showWithArguments")();
  assert.deepEqual(errors, []);
  const address = /<iframe[^>]* src="(http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/)"/.exec(panels[0].webview.html)?.[1];
  assert.ok(address, panels[0].webview.html);
  assert.deepEqual((await (await fetch(`${address}start`)).json()).names, ["loss"]);
  commands.get("selection")({textEditor: vscode.window.activeTextEditor, selections: [{active: {line: 4}}]});
  assert.deepEqual(panels[0].webview.posted, [{gradscribe: "caret", file, line: 5}]);
  await panels[0].received[0]({gradscribe: "open", file, line: 5});
  assert.equal(opened.length, 1);
  assert.equal(opened[0].selection.line, 4);
  await panels[0].received[0]({gradscribe: "open", file: "/etc/passwd", line: 1});
  assert.equal(opened.length, 1);
  extension.deactivate();
  let ended = false;
  for (let k = 0; k < 100 && !ended; k++) {
    await new Promise(resolve => setTimeout(resolve, 100));
    ended = await fetch(`${address}start`).then(() => false, () => true);
  }
  assert.ok(ended, "the server still answers");
  fs.rmSync(folder, {recursive: true});
});

test("an interpreter that is not there", {timeout: 60_000}, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "gradscribe"));
  const {vscode, commands, panels} = standIn(path.join(folder, "m.py"));
  vscode.workspace.getConfiguration = () => ({get: () => path.join(folder, "nothing")});
  loaded(vscode).activate({subscriptions: []});
  await commands.get("gradscribe.show")();
  assert.match(panels[0].webview.html, /cannot be started/);
  fs.rmSync(folder, {recursive: true});
});
