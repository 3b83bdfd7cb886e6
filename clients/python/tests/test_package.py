# SPDX-License-Identifier: MIT
"""The wheel is complete, and its README is true."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

from e2e import ROOT, communicate, expect, expect_in, expect_true, run, test
from library import SOURCES


def python(place, *args, cwd=None):
    done = run([sys.executable, "-B", *args], cwd=cwd,
               env={**place.env, "PYTHONPATH": place.path("site")})
    expect(0, done.returncode, done.stderr)
    return done.stdout


def install(place):
    """What pip does with the wheel, from a copy: it builds where sources are."""
    copy = place.path("copy")
    scripts = os.path.join("adapters", "redis", "scripts")
    shutil.copytree(os.path.join(ROOT, scripts), os.path.join(copy, scripts))
    shutil.copytree(SOURCES, os.path.join(copy, "clients", "python"))
    here = os.path.join(copy, "clients", "python")
    python(place, "setup.py", "-q", "bdist_wheel", cwd=here)
    wheel, = os.listdir(os.path.join(here, "dist"))
    with zipfile.ZipFile(os.path.join(here, "dist", wheel)) as file:
        file.extractall(place.path("site"))
    return wheel


@test
def the_wheel_has_the_package_and_its_scripts(place):
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"project\(weir VERSION (\S+)", file.read())[1]
    expect("weir-%s-py3-none-any.whl" % version, install(place))
    out = python(place, "-c", "import weir, weir.aio; "
                 "print(sorted(weir.client.SCRIPTS))", cwd=place.dir)
    expect_in("'push'", out)
    expect_in("py.typed", os.listdir(place.path("site/weir")))


@test
def the_examples_of_the_readme_run(place):
    install(place)
    place.weir("add", "other")  # starts the server
    with open(os.path.join(SOURCES, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
    expect(3, len(blocks))
    for number, block in enumerate(blocks):
        block = block.replace(".Redis()", ".Redis(unix_socket_path=%r)"
                              % os.path.join(place.data, "redis.sock"))
        place.write("example%d.py" % number, block)
    expect_in("order-42 True", python(place, place.path("example0.py")))
    for number in (1, 2):
        place.ok("add", "orders", "--body", '{"order":44}')
        process = subprocess.Popen(
            [sys.executable, "-B", "-u", place.path("example%d.py" % number)],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**place.env, "PYTHONPATH": place.path("site")})
        place.started.append(process)
        line = process.stdout.readline()  # of two threads that print, perhaps
        expect_true(re.search("4[234]", line), line)
        process.terminate()
        _, err = communicate(process)
        expect((0, ""), (process.returncode, err))
