# SPDX-License-Identifier: MIT
"""python3 tests/e2e/run.py FILE [TEST...]: the tests of a file, or some."""

import importlib
import os
import sys

import e2e

folder, name = os.path.split(os.path.abspath(sys.argv[1]))
sys.path.insert(0, folder)
importlib.import_module(name[:-len(".py")])
e2e.main(sys.argv[2:])
