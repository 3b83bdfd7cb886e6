# SPDX-License-Identifier: MIT
"""The Debian package: what it needs, what is in it, and that it works."""

import glob
import os
import subprocess

from e2e import BUILD, PATIENCE, expect, expect_in, expect_true, test
from prefix import blocks, shell, use, write


def pack(place):
    done = subprocess.run(["cpack", "-G", "DEB", "-B", place.path("out")],
                          cwd=BUILD, text=True, capture_output=True,
                          env=place.env, timeout=PATIENCE * 3)
    expect(0, done.returncode, done.stdout + done.stderr)
    (package,) = glob.glob(place.path("out/*.deb"))
    return package


def smoke(place):
    """What a first user does with an installed weir."""
    expect_in("weir 0.", shell(place, "weir --version"))
    shell(place, "weir add t --id 1 --body '{\"n\":1}'")
    expect_in('"id":"1"', shell(place, "weir run --handle t=echo "
                                       "--until-empty"))
    expect_in("verdict  RETRY", shell(place, "weir plugin try flaky || "
                                             "test $? = 10"))
    shell(place, "weir plugin new hello")
    expect_in("100% tests passed",
              shell(place, blocks(place.path("hello/README.md"))[0], "hello"))
    shell(place, "weir-bench --version; weir server stop")


@test
def a_package_names_what_it_needs(place):
    out = shell(place, "dpkg-deb --info " + pack(place))
    for part in ("Package: weir\n", "Version: 0.1.0", "libev4", "libhiredis",
                 "libjson-c", "libsqlite3-0",
                 "Recommends: redis-server"):
        expect_in(part, out)


@test
def a_package_is_installed_and_passes_its_smoke_test(place):
    package = pack(place)
    root = place.path("root")
    os.makedirs(root + "/var/lib/dpkg/info")
    os.makedirs(root + "/var/lib/dpkg/updates")
    write(place, "root/var/lib/dpkg/status", "")
    # Its needs are met by the system that the test runs on.
    out = shell(place, "dpkg --root=%s --force-not-root --force-depends "
                       "--force-script-chrootless --log=/dev/null -i %s"
                % (root, package))
    expect_in("Setting up weir", out)
    use(place, root + "/usr")
    smoke(place)
    listing = shell(place, "dpkg --root=%s -L weir" % root)
    for path in ("/usr/lib/libweir.so.0", "/usr/bin/weir",
                 "/usr/lib/systemd/system/weir.service"):
        expect_in(path, listing)
    with open(root + "/usr/lib/systemd/system/weir.service") as file:
        expect_in("ExecStart=/usr/bin/weir run", file.read())
    shell(place, "dpkg --root=%s --force-not-root --force-script-chrootless "
                 "--log=/dev/null -r weir"
          % root)
    expect_true(not os.path.exists(root + "/usr/bin/weir"), "it is gone")
