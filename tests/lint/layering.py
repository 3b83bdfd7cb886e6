#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include what: dependencies point inwards only.

    plugins  -> <weir/plugin.h>, C library, the library they are made for
    examples -> <weir/...>, any library
    adapters -> core, their own folder, <weir/...>, the library they adapt;
                those in adapters/weir, cli and web put the folders together
    bench    -> bench, <weir/...>, a few parts of adapters and core, libraries
    core     -> core, <weir/...>, the part of the C library that only computes
"""

import re

import lint

# What core may use anywhere, and what it may use in few places.
CORE_LIBRARY = {"inttypes.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h",
                "stdint.h", "string.h"}
CORE_EXCEPTIONS = {
    # snprintf and an assertion's last words
    "stdio.h": {"core/assert.c", "core/error.c", "core/outcome_log.c",
                "core/text.c"},
    # abort, the heap
    "stdlib.h": {"core/assert.c", "core/mem.c"},
    # macros alone
    "sys/sdt.h": {"core/probe.h"},
}

PUBLIC_LIBRARY = {"stdbool.h", "stddef.h", "stdint.h", "string.h"}

# The public headers that a plugin includes, and what these may include.
HANDLER_HEADERS = ("/base.h", "/body.h", "/job.h", "/loop.h",
                   "/plugin.h", "/redis.h")
HANDLER_SEES = {"weir/base.h", "weir/body.h", "weir/job.h", "weir/loop.h",
                "weir/plugin.h", "weir/redis.h"}

# Third-party headers, and the adapters that may include them.
THIRD_PARTY = {
    r"ev\.h": {"cli", "ev", "http", "redis", "web"},
    r"sys/timerfd\.h": {"ev"},
    r"hiredis/.*|hiredis\.h": {"redis", "server"},
    r"async\.h": {"redis"},
    r"openssl/.*": {"redis"},
    r"getopt\.h": {"cli"},
    r"msgpack\.h|msgpack/.*": {"json", "msgpack"},
    r"json-c/.*|json\.h": {"cli", "json", "web"},
    r"jq\.h": {"cli"},
    r"dlfcn\.h": {"cli", "dl"},
    r"microhttpd\.h": {"http"},
    r"(elf|link)\.h": {"dl"},
    r"(execinfo|sys/auxv|sys/ioctl|sys/prctl|sys/signalfd)\.h": {"cli"},
    r"linux/(audit|filter|seccomp)\.h": {"cli"},
}

# What a plugin may include of other people's, by its source.
PLUGIN_LIBRARIES = {
    "plugins/archive.c": {"sqlite3.h"},
    "plugins/exec_stream_child.c": {"sys/ioctl.h"},
    "plugins/notify.c": {"openssl/evp.h", "openssl/hmac.h"},
    "plugins/notify.h": {"curl/curl.h"},
}

# The private header of a plugin that has several sources.
PLUGIN_HEADERS = {
    "plugins/exec.c": {"exec_stream.h"},
    "plugins/exec_answer.c": {"exec_stream.h"},
    "plugins/exec_child.c": {"exec.h"},
    "plugins/exec_json.c": {"exec.h"},
    "plugins/exec_output.c": {"exec.h"},
    "plugins/exec_process.c": {"exec.h"},
    "plugins/exec_stream.c": {"exec_stream.h"},
    "plugins/exec_stream.h": {"exec.h"},
    "plugins/exec_stream_child.c": {"exec_stream.h"},
    "plugins/exec_text.c": {"exec.h"},
    "plugins/notify.c": {"notify.h"},
    "plugins/notify_allow.c": {"notify.h"},
    "plugins/notify_http.c": {"notify.h"},
    "plugins/notify_room.c": {"notify.h"},
    "plugins/notify_sigpipe.c": {"notify.h"},
}

# An adapter and the other ones it may include.
ADAPTERS = {
    "json": {"msgpack"},
    "redis": {"json", "msgpack"},
    "server": {"redis"},
}

# What the benchmark may use beside the public headers.
BENCH = (r"bench/.*|adapters/server/.*|core/(assert|error|nearest)\.h"
         r"|adapters/cli/options\.h"
         r"|adapters/redis/(cluster/(map|slot)|conn/tls|probe|url)\.h")
BENCH_LIBRARIES = r"(ev|hiredis|getopt)\.h|json-c/.*"


def third_party(name):
    """The adapters that may include <name>; None when it is none of these."""
    for pattern, adapters in THIRD_PARTY.items():
        if re.fullmatch(pattern, name):
            return adapters
    return None


def public(path, name, quoted):
    if quoted:
        return "a public header includes only <weir/...> and the C library"
    if name.startswith("weir/"):
        if path.endswith(HANDLER_HEADERS) and name not in HANDLER_SEES:
            return f"a header of handlers does not know <{name}>"
        return None
    if name not in PUBLIC_LIBRARY:
        return f"a public header does not include <{name}>"
    return None


def core(path, name, quoted):
    if quoted:
        return None if name.startswith("core/") else \
            f'core does not include "{name}"'
    if name.startswith("weir/") or name in CORE_LIBRARY or \
            path in CORE_EXCEPTIONS.get(name, ()):
        return None
    return f"core does not include <{name}>"


def adapter(path, name, quoted):
    own = path.split("/")[1]
    if quoted:
        if name.startswith(("core/", f"adapters/{own}/")):
            return None
        if name.startswith("adapters/") and (
                own in ("cli", "web", "weir") or
                name.split("/")[1] in ADAPTERS.get(own, ())):
            return None
        return f'adapters/{own} does not include "{name}"'
    allowed = third_party(name)
    if allowed is not None and own not in allowed:
        return f"adapters/{own} does not include <{name}>"
    if allowed is None and not name.startswith("weir/") and \
            name not in lint.C_LIBRARY:
        return f"<{name}> is not a header that weir knows"
    return None


def plugin(path, name, quoted):
    if quoted:
        return None if name in PLUGIN_HEADERS.get(path, ()) else \
            f'a plugin does not include "{name}"'
    if name in PLUGIN_LIBRARIES.get(path, ()):
        return None
    if name != "weir/plugin.h" and name not in lint.C_LIBRARY:
        return f"a plugin does not include <{name}>"
    return None


def bench(_path, name, quoted):
    if quoted:
        return None if re.fullmatch(BENCH, name) else \
            f'the benchmark does not include "{name}"'
    if name.startswith("weir/") or name in lint.C_LIBRARY or \
            re.fullmatch(BENCH_LIBRARIES, name):
        return None
    return f"the benchmark does not include <{name}>"


def example(_path, _name, quoted):
    return "an example uses public headers only" if quoted else None


RULES = (
    (r"core/include/", public),
    (r"core/", core),
    (r"adapters/", adapter),
    (r"plugins/", plugin),
    (r"bench/", bench),
    (r"docs/examples/", example),
)


def check(tree, report):
    for path in tree.named(".c", ".h"):
        rule = next((rule for prefix, rule in RULES
                     if re.match(prefix, path)), None)
        if rule is None:
            continue
        report.checked.add(path)
        for line, included in lint.includes(tree.text(path)):
            what = rule(path, included[1:-1], included[0] == '"')
            if what:
                report.finding(path, line, what)


CASES = {
    "what is allowed": ({
        "core/include/weir/plugin.h": "#include <weir/base.h>\n",
        "core/error.c": '#include "core/error.h"\n#include <stdio.h>\n',
        "core/run.h": "#include <weir/weir.h>\n#include <string.h>\n",
        "adapters/redis/conn/conn.c":
            '#include "adapters/msgpack/scan.h"\n#include "core/buf.h"\n'
            '#include <ev.h>\n#include <hiredis/async.h>\n'
            '#include <sys/socket.h>\n/* #include <dlfcn.h> */\n',
        "adapters/json/json.c": "#include <json-c/json.h>\n",
        "adapters/cli/run.c": '#include "adapters/redis/delay/delay.h"\n'
                              "#include <ev.h>\n",
        "adapters/weir/weir.c": '#include "adapters/ev/driver.h"\n'
                           '#include "adapters/weir/facade.h"\n',
        "plugins/echo.c": "#include <weir/plugin.h>\n#include <stdio.h>\n",
        "plugins/archive.c": "#include <sqlite3.h>\n",
        "plugins/notify.h": "#include <curl/curl.h>\n",
        "plugins/notify_http.c": '#include "notify.h"\n',
        "docs/examples/host.c": "#include <ev.h>\n#include <weir/weir.h>\n",
        "bench/floor.c": '#include "adapters/server/ask.h"\n'
                         '#include "bench/floor.h"\n#include "core/error.h"\n'
                         "#include <hiredis.h>\n#include <weir/weir.h>\n",
        "tests/core/test_x.c": '#include "adapters/redis/conn/conn.h"\n',
    }, []),
    "core reaches up": (
        {"core/run.c": '#include "core/run.h"\n'
                       '#include "adapters/redis/conn/conn.h"\n'},
        ['core/run.c:2: core does not include "adapters/redis/conn/conn.h"']),
    "core knows a library": (
        {"core/run.c": "#  include  <hiredis/hiredis.h>\n"},
        ["core/run.c:1: core does not include <hiredis/hiredis.h>"]),
    "core reads a clock": (
        {"core/run.c": "#include <time.h>\n"},
        ["core/run.c:1: core does not include <time.h>"]),
    "core prints": (
        {"core/run.c": "\n#include <stdio.h>\n"},
        ["core/run.c:2: core does not include <stdio.h>"]),
    "a public header shows a library": (
        {"core/include/weir/weir.h": "#include <ev.h>\n"},
        ["core/include/weir/weir.h:1: "
         "a public header does not include <ev.h>"]),
    "a public header shows a private one": (
        {"core/include/weir/base.h": '#include "core/error.h"\n'},
        ["core/include/weir/base.h:1: a public header includes only "
         "<weir/...> and the C library"]),
    "the plugin header knows the reactor": (
        {"core/include/weir/plugin.h": "#include <weir/weir.h>\n"},
        ["core/include/weir/plugin.h:1: "
         "a header of handlers does not know <weir/weir.h>"]),
    "an adapter includes another": (
        {"adapters/ev/driver.c": '#include "adapters/redis/conn/conn.h"\n'},
        ['adapters/ev/driver.c:1: '
         'adapters/ev does not include "adapters/redis/conn/conn.h"']),
    "an adapter includes what puts it together": (
        {"adapters/ev/driver.c": '#include "adapters/weir/facade.h"\n'},
        ['adapters/ev/driver.c:1: '
         'adapters/ev does not include "adapters/weir/facade.h"']),
    "a library where the folders are put together": (
        {"adapters/weir/weir.c": "#include <ev.h>\n"},
        ["adapters/weir/weir.c:1: adapters/weir does not include <ev.h>"]),
    "an adapter includes another's library": (
        {"adapters/dl/loader.c": "#include <dlfcn.h>\n#include <ev.h>\n"},
        ["adapters/dl/loader.c:2: adapters/dl does not include <ev.h>"]),
    "the server of the command in the library": (
        {"adapters/weir/weir.c": "#include <microhttpd.h>\n"},
        ["adapters/weir/weir.c:1: "
         "adapters/weir does not include <microhttpd.h>"]),
    "a library nobody has heard of": (
        {"adapters/ev/driver.c": "#include <glib.h>\n"},
        ["adapters/ev/driver.c:1: <glib.h> is not a header that weir knows"]),
    "a plugin looks inside": (
        {"plugins/echo.c": '#include "core/buf.h"\n'
                           "#include <weir/weir.h>\n"},
        ['plugins/echo.c:1: a plugin does not include "core/buf.h"',
         "plugins/echo.c:2: a plugin does not include <weir/weir.h>"]),
    "a plugin takes another's": (
        {"plugins/echo.c": '#include "notify.h"\n#include <curl/curl.h>\n'},
        ['plugins/echo.c:1: a plugin does not include "notify.h"',
         "plugins/echo.c:2: a plugin does not include <curl/curl.h>"]),
    "the benchmark looks inside": (
        {"bench/load.c": '#include "adapters/redis/delay/delay.h"\n'
                         "#include <msgpack.h>\n"},
        ['bench/load.c:1: the benchmark does not include '
         '"adapters/redis/delay/delay.h"',
         "bench/load.c:2: the benchmark does not include <msgpack.h>"]),
    "a plugin takes another's library": (
        {"plugins/echo.c": "#include <sqlite3.h>\n"},
        ["plugins/echo.c:1: a plugin does not include <sqlite3.h>"]),
    "an example looks inside": (
        {"docs/examples/host.c": '#include "core/buf.h"\n'},
        ["docs/examples/host.c:1: an example uses public headers only"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
