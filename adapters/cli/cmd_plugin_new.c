/* SPDX-License-Identifier: MIT */

/* weir plugin new: a directory with a plugin that builds at once. */

#include "adapters/cli/output.h"
#include "adapters/cli/template.h"
#include "core/text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_LEN = 40 };

/* A template and the file that it becomes in the new directory. */
static const struct {
    const char *template;
    const char *before, *after; /* what stands around the name */
    bool has_name;
} files[] = {
    {"CMakeLists.txt.in", "CMakeLists.txt", "", false},
    {"README.md.in", "README.md", "", false},
    {"plugin.c.in", "", ".c", true},
    {"test.c.in", "test_", ".c", true},
};

enum { FILES = sizeof(files) / sizeof(files[0]) };

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");

    return name[len] == '\0' && len <= NAME_MAX_LEN && name[0] >= 'a' &&
           name[0] <= 'z';
}

static const char *find_text(const char *name)
{
    const struct weir__template *template = weir__templates;

    while (template->name != NULL && strcmp(template->name, name) != 0)
        template ++;
    return template->text;
}

/* Where this weir is installed, for the plugin's build to look there first: the
 * folder above bin/, or that of the program in a build tree. */
static void find_prefix(char ret_prefix[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", ret_prefix, PATH_MAX - 1);
    char *slash;

    ret_prefix[len > 0 ? len : 0] = '\0';
    slash = strrchr(ret_prefix, '/');
    if (slash != NULL)
        *slash = '\0';
    slash = strrchr(ret_prefix, '/');
    if (slash != NULL && strcmp(slash, "/bin") == 0)
        *slash = '\0';
}

/* Print `text` with what stands between @ signs replaced. */
static void print_text(FILE *file, const char *text, const char *name,
                       const char *prefix)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "@");

        (void)fwrite(text, 1, len, file); /* ferror tells */
        text += len;
        if (strncmp(text, "@NAME@", 6) == 0) {
            (void)fputs(name, file);
            text += 6;
        } else if (strncmp(text, "@PREFIX@", 8) == 0) {
            (void)fputs(prefix, file);
            text += 8;
        } else if (*text == '@') {
            (void)fputc(*text++, file);
        }
    }
}

static void file_path(size_t i, const char *name, char ret_path[PATH_MAX])
{
    (void)snprintf(ret_path, PATH_MAX, "%s/%s%s%s", name, files[i].before,
                   files[i].has_name ? name : "", files[i].after); /* fits */
}

static bool write_file(size_t i, const char *name, const char *prefix)
{
    char path[PATH_MAX];
    FILE *file;
    bool is_good;

    file_path(i, name, path);
    file = fopen(path, "wx");
    if (file == NULL) {
        weir__complain("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    print_text(file, find_text(files[i].template), name, prefix);
    is_good = ferror(file) == 0;
    if (fclose(file) != 0)
        is_good = false;
    if (!is_good)
        weir__complain("cannot write %s: %s", path, strerror(errno));
    return is_good;
}

static enum weir__exit print_files(const struct weir__cli *cli,
                                   const char *name)
{
    struct json_object *array = cli->json ? json_object_new_array() : NULL;
    char path[PATH_MAX];

    for (size_t i = 0; i < FILES; i++) {
        file_path(i, name, path);
        if (cli->json)
            array = weir__array_with(array, json_object_new_string(path));
        else
            weir__print("%s\n", path);
    }
    return cli->json
               ? weir__print_object(WEIR__OBJECT(weir__field("files", array)))
               : WEIR__EXIT_DONE;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    const char *name = args->operand[0];
    char prefix[PATH_MAX];

    if (!is_name(name)) {
        weir__complain("\"%.60s\" cannot be a plugin's name: wanted 1 to %d of "
                       "a-z, 0-9, _ and -, a letter first",
                       name, NAME_MAX_LEN);
        return WEIR__EXIT_USAGE;
    }
    if (mkdir(name, 0777) < 0) {
        int code = errno;

        weir__complain("cannot make the directory %s: %s%s", name,
                       strerror(code),
                       code == EEXIST ? "; take another name" : "");
        return code == EEXIST ? WEIR__EXIT_EXISTS : WEIR__EXIT_FAILED;
    }
    find_prefix(prefix);
    for (size_t i = 0; i < FILES; i++)
        if (!write_file(i, name, prefix))
            return WEIR__EXIT_FAILED;
    return print_files(cli, name);
}

const struct weir__command weir__cmd_plugin_new = {
    .name = "plugin new",
    .operands = "NAME",
    .summary = "Write a plugin that builds at once",
    .details = "Makes the directory NAME with CMakeLists.txt, a source, a test "
               "and a README\nthat says how to build, test and run it; prints "
               "the files' names. With --json:\n{\"files\":[...]}.",
    .example = "weir plugin new close_order",
    .exits = "0 written, 1 cannot be written, 2 wrong usage, 4 there is\n"
             "  something of that name already",
    .run = run,
};
