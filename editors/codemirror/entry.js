// SPDX-License-Identifier: Apache-2.0
// What the live page uses of CodeMirror 6; `build.sh` bundles it into gradscribe/live_assets/codemirror.js.
export {EditorState, StateEffect, StateField, Prec} from "@codemirror/state";
export {Decoration, EditorView, GutterMarker, drawSelection, gutter, highlightActiveLine, hoverTooltip, keymap,
  lineNumbers} from "@codemirror/view";
export {bracketMatching, codeFolding, foldGutter, foldKeymap, syntaxHighlighting} from "@codemirror/language";
export {python} from "@codemirror/lang-python";
export {highlightSelectionMatches, openSearchPanel, search, searchKeymap} from "@codemirror/search";
export {defaultKeymap} from "@codemirror/commands";
export {classHighlighter} from "@lezer/highlight";
