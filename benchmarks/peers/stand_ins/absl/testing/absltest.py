"""Python's own unittest."""
import contextlib
import unittest
from unittest import *  # noqa: F403
from unittest import mock

__all__ = ["TestLoader", "main", "mock"]


class TestCase(unittest.TestCase):
    def assertLen(self, container, length, msg=None):
        self.assertEqual(len(container), length, msg)

    def assertEmpty(self, container, msg=None):
        self.assertEqual(len(container), 0, msg)

    def assertNotEmpty(self, container, msg=None):
        self.assertNotEqual(len(container), 0, msg)

    def assertContainsSubset(self, subset, container, msg=None):
        self.assertLessEqual(set(subset), set(container), msg)

    def assertStartsWith(self, whole, prefix, msg=None):
        self.assertTrue(whole.startswith(prefix), msg or f"{whole!r} does not start with {prefix!r}")

    def assertSequenceStartsWith(self, prefix, whole, msg=None):
        self.assertEqual(list(prefix), list(whole)[:len(prefix)], msg)

    @contextlib.contextmanager
    def assertRaisesWithLiteralMatch(self, kind, message):
        with self.assertRaises(kind) as caught:
            yield
        if str(caught.exception) != message:
            raise self.failureException(f'"{message}" does not match "{caught.exception}"')


TestLoader, main = unittest.TestLoader, unittest.main
