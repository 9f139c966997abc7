// SPDX-License-Identifier: Apache-2.0
"use strict";
const assert = require("node:assert");
const path = require("path");
const test = require("node:test");
const {addressIn, functionAt, moduleOf} = require("../names");

const LINES = `import numpy as np

def first(x):
    y = x

    return y

@decorated
def second(
    x,
):
    def inner(t):
        return t
    return inner(x)

X = 3

class Model:
    def method(self):
        return 1
`.split("\n");

test("the function around a line", () => {
  assert.equal(functionAt(LINES, 2), "first");
  assert.equal(functionAt(LINES, 5), "first");
  assert.equal(functionAt(LINES, 9), "second");
  assert.equal(functionAt(LINES, 12), "second");
});

test("the next function where there is none around", () => {
  assert.equal(functionAt(LINES, 0), "first");
  assert.equal(functionAt(LINES, 15), null);
  assert.equal(functionAt([], 0), null);
});

test("the module of a file", () => {
  const there = new Set([path.join("/a", "b", "__init__.py"), path.join("/a", "b", "c", "__init__.py")]);
  const has = name => there.has(name);
  assert.deepEqual(moduleOf(path.join("/a", "x.py"), has), {folder: "/a", module: "x"});
  assert.deepEqual(moduleOf(path.join("/a", "b", "c", "x.py"), has), {folder: "/a", module: "b.c.x"});
  assert.deepEqual(moduleOf(path.join("/a", "b", "__init__.py"), has), {folder: "/a", module: "b"});
  assert.equal(moduleOf(path.join("/a", "1st-try.py"), has), null);
});

test("the address that the command prints", () => {
  assert.equal(addressIn("http://127.0.0.1:4242/ab_c-D/\n"), "http://127.0.0.1:4242/ab_c-D/");
  assert.equal(addressIn("http://evil.example/ab/"), null);
  assert.equal(addressIn("Save the file"), null);
});
