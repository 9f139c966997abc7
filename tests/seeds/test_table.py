# SPDX-License-Identifier: Apache-2.0
"""The page that lists the rows is what the tests say."""
import seeds_table


def test_page_is_up_to_date():
    assert seeds_table.PAGE.read_text(encoding="utf-8") == seeds_table.page(), "run python benchmarks/seeds_table.py"


def test_every_row_has_a_test():
    without = [row for row, tests in seeds_table.found().items() if not tests]
    assert without == []
