"""Typed trees to text, text to callables; knows nothing of derivatives."""
