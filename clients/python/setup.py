# SPDX-License-Identifier: MIT
"""Brings the scripts into the package, as cmake/embed_lua.cmake makes them."""

import os
import re

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "..", "adapters", "redis", "scripts")
USED = ["delay/add", "delay/finish", "delay/pull", "delay/push", "delay/renew",
        "delay/slot", "delay/stats", "store/beat"]


def read(name):
    path = name if "/" in name else "lib/" + name
    with open(os.path.join(SCRIPTS, path + ".lua"), encoding="utf-8") as file:
        return file.read()


def included(found):
    text = read(found[1])
    return re.sub(r"(?m)^--#include .*\n", "", text) if "/" in found[1] \
        else text


def script_text(name):
    text, include = read(name), re.compile(r"--#include ([a-z_/]+)\n")
    while include.search(text):
        text = include.sub(included, text)
    text = re.sub(r"\n *--[^\n]*", "", "\n" + text)
    return re.sub(r"\n[ \n]+", "\n", text)[1:]


class Build(build_py):
    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "weir", "scripts")
        os.makedirs(folder, exist_ok=True)
        for name in USED:
            path = os.path.join(folder, os.path.basename(name) + ".lua")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script_text(name))


setup(cmdclass={"build_py": Build})
