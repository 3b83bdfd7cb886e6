/* SPDX-License-Identifier: MIT */

/* The files of the page, as they were embedded. "/" is index.html. */

#include "adapters/web/files.h"
#include "adapters/web/web.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <string.h>

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(dot, types[i][0]) == 0)
            return types[i][1];
    return "application/octet-stream";
}

static size_t file_count(void)
{
    size_t count = 0;

    while (weir__web_files[count].name != NULL)
        count++;
    return count;
}

static void file(struct weir__http_request *request, void *arg)
{
    const struct weir__web *web = arg;
    const char *name = weir__http_part(request, 0);

    if (name == NULL)
        name = "index.html";
    if (weir__http_part(request, 1) != NULL)
        name = "";
    for (size_t i = 0; weir__web_files[i].name != NULL; i++) {
        if (strcmp(name, weir__web_files[i].name) == 0) {
            weir__http_answer_shared(request, web->files[i]);
            return;
        }
    }
    weir__http_refuse(request, 404, "there is nothing at this address");
}

int weir__web_page_routes(struct weir__web *web)
{
    size_t count = file_count();

    WEIR_ASSERT(count > 0 && web->files == NULL);
    web->files = weir__mem_new(count * sizeof(struct weir__http_content *));
    if (web->files == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct weir__web_file *embedded = &weir__web_files[i];

        web->files[i] = weir__http_content_static(
            type_of(embedded->name),
            weir__slice_of(embedded->bytes, embedded->len));
        if (web->files[i] == NULL)
            return WEIR_ENOMEM;
    }
    weir__web_route(web, WEIR__HTTP_GET, WEIR__HTTP_OPEN, "/", file);
    return WEIR_OK;
}

void weir__web_page_fini(struct weir__web *web)
{
    size_t count = file_count();

    for (size_t i = 0; web->files != NULL && i < count; i++)
        weir__http_content_free(web->files[i]);
    weir__mem_free(web->files);
    web->files = NULL;
}
