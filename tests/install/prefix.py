# SPDX-License-Identifier: MIT
"""A fresh installation in a test's place, and shells that see nothing else."""

import os
import re
import subprocess

from e2e import BUILD, PATIENCE, expect, run


def install(place):
    """Install into place/prefix; commands of the place then find it."""
    prefix = place.path("prefix")
    done = run(["cmake", "--install", os.path.abspath(BUILD), "--prefix",
                prefix])
    expect(0, done.returncode, done.stderr)
    use(place, prefix)
    return prefix


def use(place, prefix):
    place.env.pop("WEIR_PLUGIN_PATH")
    place.env["PATH"] = prefix + "/bin:" + place.env["PATH"]
    place.env["PKG_CONFIG_PATH"] = prefix + "/lib/pkgconfig"
    place.env["LD_LIBRARY_PATH"] = prefix + "/lib"
    place.env["CCACHE_DISABLE"] = "1"


def shell(place, script, folder=""):
    done = run(["sh", "-euc", script], patience=PATIENCE * 3,
               cwd=place.path(folder), env=place.env,
               stdin=subprocess.DEVNULL)
    expect(0, done.returncode,
           "%s\n%s%s\nexit code" % (script, done.stdout, done.stderr))
    return done.stdout + done.stderr


def blocks(path):
    """The fenced shell commands of a page."""
    with open(path, encoding="utf-8") as file:
        return re.findall(r"```sh\n(.*?)```", file.read(), re.S)


def write(place, name, text):
    with open(place.path(name), "w", encoding="utf-8") as file:
        file.write(text)
