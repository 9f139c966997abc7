// SPDX-License-Identifier: Apache-2.0
// Starts `gradscribe live` for the function at the cursor and shows its page beside the editor.
"use strict";
const {spawn} = require("child_process");
const crypto = require("crypto");
const fs = require("fs");
const readline = require("readline");
const vscode = require("vscode");
const {addressIn, functionAt, moduleOf} = require("./names");

const WAIT = 60_000;                    // milliseconds until the server must have printed its address
const pages = new Map();                // {"file:function": {panel, process}}
let output;

function activate(context) {
  output = vscode.window.createOutputChannel("Gradscribe");
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("gradscribe.show", () => show("")),
    vscode.commands.registerCommand("gradscribe.showWithArguments", showWithArguments),
    vscode.commands.registerCommand("gradscribe.stop", stop),
    vscode.window.onDidChangeTextEditorSelection(tellCaret),
    {dispose: stop});
}

function stop() {
  for (const page of [...pages.values()]) page.panel.dispose();
}

async function showWithArguments() {
  const kinds = await vscode.window.showInputBox({
    title: "Arguments of the function", placeHolder: "float64[n, 3], float64[3], 20",
    prompt: "Dtypes with lengths, or values. Equal letters are equal lengths."});
  if (kinds !== undefined) await show(kinds);
}

async function show(kinds) {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.languageId !== "python" || editor.document.uri.scheme !== "file") {
    vscode.window.showErrorMessage("Gradscribe: open a Python file first.");
    return;
  }
  const file = editor.document.fileName, place = moduleOf(file, fs.existsSync);
  const name = functionAt(editor.document.getText().split(/\r?\n/), editor.selection.active.line);
  if (!name || !place) {
    vscode.window.showErrorMessage(place ? "Gradscribe: the file has no function at its top level." :
      "Gradscribe: Python cannot import a file of this name.");
    return;
  }
  const key = `${file}:${name}`, known = pages.get(key);
  if (known && !kinds) {
    known.panel.reveal();
    return;
  }
  known?.panel.dispose();
  const panel = vscode.window.createWebviewPanel("gradscribe", `${name}: derivative`,
    {viewColumn: vscode.ViewColumn.Beside, preserveFocus: true}, {enableScripts: true, retainContextWhenHidden: true});
  panel.webview.html = message("Starting gradscribe live.");
  try {
    const process = await started(place, name, kinds);
    pages.set(key, {panel, process, file});
    panel.onDidDispose(() => {
      pages.delete(key);
      process.stdin.end();              // the server ends with its input
      setTimeout(() => process.kill(), 2000).unref();
    });
    panel.webview.onDidReceiveMessage(told => open(told, file));
    process.once("exit", code => {
      if (pages.has(key)) panel.webview.html = message(`gradscribe live has ended with status ${code}.`);
    });
    const html = framed(await vscode.env.asExternalUri(vscode.Uri.parse(await process.address)));
    if (pages.has(key)) panel.webview.html = html;
  } catch (error) {
    if (!pages.has(key)) return;        // the panel was closed meanwhile
    panel.webview.html = message(String(error.message));
    output.show(true);
  }
}

/** The process of `gradscribe live`; its `address` is a promise. */
async function started({folder, module}, name, kinds) {
  const args = ["-m", "gradscribe", "live", `${module}:${name}`, "--no-browser", "--until-closed"];
  if (kinds) args.push("--args", kinds);
  const python = await interpreter();
  output.appendLine(`${python} ${args.join(" ")}    (in ${folder})`);
  const process = spawn(python, args, {cwd: folder, stdio: "pipe"});
  process.stdin.on("error", () => {});          // it has ended already
  process.stderr.on("data", data => output.append(String(data)));
  process.address = new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      process.kill();
      reject(new Error("gradscribe live has printed no address."));
    }, WAIT);
    readline.createInterface({input: process.stdout}).on("line", line => {
      const address = addressIn(line);
      if (address) { clearTimeout(timer); resolve(address); }
    });
    process.once("error", error => { clearTimeout(timer); reject(new Error(`${python} cannot be started: ${error.message}`)); });
    process.once("exit", code => {
      clearTimeout(timer);
      reject(new Error(`gradscribe live has ended with status ${code}: see the output named Gradscribe. ` +
        "Is Gradscribe installed for this interpreter?"));
    });
  });
  return process;
}

async function interpreter() {
  const own = vscode.workspace.getConfiguration("gradscribe").get("python");
  if (own) return own;
  try {
    const extension = vscode.extensions.getExtension("ms-python.python");
    const api = extension && await extension.activate();
    const chosen = api && await api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath());
    if (chosen?.executable?.uri) return chosen.executable.uri.fsPath;
  } catch (error) {
    output.appendLine(`The Python extension names no interpreter: ${error.message}`);
  }
  return process.platform === "win32" ? "python" : "python3";
}

// --- between the page and the editor ---------------------------------------------------------------------------------

/** Open a line that was double-clicked in the page: of the user's files only, which the editor shows anyway. */
async function open(told, file) {
  if (told?.gradscribe !== "open" || typeof told.file !== "string" || !told.file.endsWith(".py") ||
      !Number.isInteger(told.line) || told.line < 1) return;
  const document = await vscode.workspace.openTextDocument(told.file);
  const line = Math.min(told.line, document.lineCount) - 1, shown = vscode.window.visibleTextEditors.find(
    editor => editor.document.fileName === told.file || editor.document.fileName === file);
  const editor = await vscode.window.showTextDocument(document, shown?.viewColumn ?? vscode.ViewColumn.One);
  editor.selection = new vscode.Selection(line, 0, line, 0);
  editor.revealRange(document.lineAt(line).range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

/** Light up what the line of the cursor became. */
function tellCaret(event) {
  const file = event.textEditor.document.fileName, line = event.selections[0].active.line + 1;
  for (const page of pages.values()) page.panel.webview.postMessage({gradscribe: "caret", file, line});
}

function framed(address) {
  const nonce = crypto.randomBytes(16).toString("base64"), origin = `${address.scheme}://${address.authority}`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"
content="default-src 'none'; frame-src ${origin}; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<style nonce="${nonce}">html, body, iframe { margin: 0; padding: 0; border: 0; width: 100%; height: 100%; }
body { overflow: hidden; }</style></head><body>
<iframe id="page" title="Gradscribe live" src="${escaped(address.toString(true))}"></iframe>
<script nonce="${nonce}">
const editor = acquireVsCodeApi(), frame = document.getElementById("page");
window.addEventListener("message", event => {
  if (event.source === frame.contentWindow) editor.postMessage(event.data);
  else if (event.data && event.data.gradscribe === "caret")
    frame.contentWindow.postMessage(event.data, ${JSON.stringify(origin)});
});
</script></body></html>`;
}

function message(text) {
  return `<!doctype html><html lang="en"><body><p role="status">${escaped(text)}</p></body></html>`;
}

function escaped(text) {
  return text.replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
}

module.exports = {activate, deactivate: stop};
