// SPDX-License-Identifier: Apache-2.0
"use strict";
const js = require("@eslint/js");
const globals = require("globals");

module.exports = [
  js.configs.recommended,
  {
    languageOptions: {ecmaVersion: 2022, sourceType: "commonjs", globals: globals.node},
    rules: {"max-len": ["error", {code: 130}], eqeqeq: "error", "no-var": "error", "prefer-const": "error"},
  },
];
