/* SPDX-License-Identifier: MIT */

/* What weir doctor finds on this machine, and its list of findings. */

#include "adapters/cli/doctor.h"

#include "adapters/cli/plugin_path.h"
#include "adapters/dl/loader.h"
#include "adapters/dl/trust.h"
#include "core/mem.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FILES_FEW = 1024 };

/* --- findings ------------------------------------------------------------ */

void weir__doctor_fini(struct weir__doctor *doctor)
{
    weir__mem_free(doctor->list);
    *doctor = (struct weir__doctor){0};
}

void weir__doctor_note(struct weir__doctor *doctor, const char *check,
                       enum weir__health health, const char *advice,
                       const char *format, ...)
{
    struct weir__finding *list =
        weir__mem_grow(doctor->list, doctor->count + 1, sizeof(*doctor->list));
    struct weir__finding *finding;
    va_list args;

    if (list == NULL) {
        doctor->is_out_of_memory = true;
        return;
    }
    doctor->list = list;
    finding = &list[doctor->count++];
    *finding = (struct weir__finding){.check = check, .health = health};
    if (doctor->node != NULL)
        (void)snprintf(finding->node, sizeof(finding->node), "%s",
                       doctor->node); /* cut */
    (void)snprintf(finding->advice, sizeof(finding->advice), "%s",
                   advice != NULL && health != WEIR__HEALTH_OK ? advice
                                                               : ""); /* cut */
    va_start(args, format);
    (void)vsnprintf(finding->text, sizeof(finding->text), format,
                    args); /* cut */
    va_end(args);
}

enum weir__health weir__doctor_worst(const struct weir__doctor *doctor,
                                     const char *check)
{
    enum weir__health worst = WEIR__HEALTH_OK;

    for (size_t i = 0; i < doctor->count; i++) {
        const struct weir__finding *finding = &doctor->list[i];

        if ((check == NULL || strcmp(finding->check, check) == 0) &&
            finding->health > worst)
            worst = finding->health;
    }
    return worst;
}

/* --- limits -------------------------------------------------------------- */

void weir__doctor_limits(struct weir__doctor *doctor)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    if (files.rlim_cur == RLIM_INFINITY) {
        weir__doctor_note(doctor, "files", WEIR__HEALTH_OK, NULL,
                          "no limit of open files");
        return;
    }
    weir__doctor_note(
        doctor, "files",
        files.rlim_cur < FILES_FEW ? WEIR__HEALTH_WARNING : WEIR__HEALTH_OK,
        "ulimit -n 1024, or LimitNOFILE=", "%ju files may be open at once",
        (uintmax_t)files.rlim_cur);
}

/* --- plugins ------------------------------------------------------------- */

struct tour {
    struct weir__doctor *doctor;
    size_t dirs; /* that are there */
};

/* False with a finding of its own. */
static bool check_plugin(struct weir__doctor *doctor, const char *dir,
                         const char *name)
{
    struct weir__plugin_file file;
    struct weir_error err = {0};
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s%s/%s",
                 strchr(dir, '/') == NULL ? "./" : "", dir,
                 name) >= (int)sizeof(path) ||
        weir__plugin_load(path, &file, &err) == WEIR_OK)
        return true;
    weir__doctor_note(doctor, "plugins", WEIR__HEALTH_FAILED,
                      "build it against this weir, or remove it", "%s",
                      err.text);
    return false;
}

/* One finding for all that lies there. */
static void refuse_dir(struct weir__doctor *doctor, const char *path)
{
    weir__doctor_note(
        doctor, "plugins", WEIR__HEALTH_FAILED,
        "look at what is in it, then chmod o-w it, or take it off the plugin "
        "path",
        "%s: everybody may write to it, so nothing in it was loaded", path);
}

static void check_dir(struct weir__doctor *doctor, const char *path, DIR *dir)
{
    char *names[WEIR__PLUGINS_MAX];
    size_t count = weir__plugin_names(dir, names), sound = 0;
    char list[160] = "";

    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(list);

        if (check_plugin(doctor, path, names[i])) {
            (void)snprintf(list + used, sizeof(list) - used, "%s%.*s",
                           sound > 0 ? ", " : "", (int)strlen(names[i]) - 3,
                           names[i]); /* cut */
            sound++;
        }
        weir__mem_free(names[i]);
    }
    weir__doctor_note(doctor, "plugins", WEIR__HEALTH_OK, NULL, "%s: %s", path,
                      sound > 0 ? list : "none");
}

static bool visit(const char *path, void *arg)
{
    struct tour *tour = arg;
    DIR *dir = opendir(path);

    if (dir == NULL)
        return false;
    tour->dirs++;
    if (weir__trust_folder(path))
        check_dir(tour->doctor, path, dir);
    else
        refuse_dir(tour->doctor, path);
    (void)closedir(dir);
    return false;
}

void weir__doctor_plugins(struct weir__doctor *doctor,
                          const struct weir__config_list *dirs)
{
    struct tour tour = {.doctor = doctor};

    (void)weir__plugin_dirs(dirs, visit, &tour);
    if (tour.dirs > 0)
        return;
    weir__doctor_note(doctor, "plugins", WEIR__HEALTH_WARNING,
                      "set WEIR_PLUGIN_PATH, or name plugins by their path",
                      "there is no directory with plugins");
}
