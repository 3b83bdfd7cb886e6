/* SPDX-License-Identifier: MIT */

/* The value of --handle, and a plugin with options where there is no topic. */

#include "adapters/cli/options.h"
#include "adapters/cli/plugin_path.h"
#include "core/mem.h"
#include "core/text.h"

#include <string.h>

/* Decode %XX in place. %00 is refused: values are C strings. */
static bool decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        int high, low;

        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        high = weir__hex_digit(from[1]);
        low = high < 0 ? -1 : weir__hex_digit(from[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return true;
}

static size_t count_options(const char *text)
{
    size_t count = 1;

    for (; *text != '\0'; text++)
        count += *text == '&' ? 1 : 0;
    return count;
}

static bool parse_option(char *text, const struct weir__handle *handle)
{
    const bool is_handle = handle->topic != NULL;
    const char *who = is_handle ? "--handle: " : "";
    char *value = strchr(text, '=');

    if (value == NULL || value == text) {
        weir__complain("%s\"%s\" is not an option; write "
                       "%sPLUGIN?key=value&key=value",
                       who, text, is_handle ? "TOPIC=" : "");
        return false;
    }
    if (!decode(value)) {
        weir__complain("%s\"%s\" has a %% that is not followed by "
                       "two hexadecimal digits from 01 to ff; write %%25 for "
                       "a %%",
                       who, text);
        return false;
    }
    return true;
}

/* Split "k=v&k=v" in place. */
static bool parse_options(char *text, struct weir__handle *handle)
{
    handle->options =
        weir__mem_new(count_options(text) * sizeof(*handle->options));
    if (handle->options == NULL) {
        weir__complain("out of memory");
        return false;
    }
    while (text != NULL) {
        char *next = strchr(text, '&');

        if (next != NULL)
            *next++ = '\0';
        if (!parse_option(text, handle))
            return false;
        handle->options[handle->option_count++] = text;
        text = next;
    }
    return true;
}

static bool parse_plugin(char *plugin, struct weir__handle *handle)
{
    char *options = strchr(plugin, '?');

    handle->plugin = plugin;
    if (options != NULL)
        *options++ = '\0';
    return options == NULL || parse_options(options, handle);
}

static bool parse_handle(char *text, struct weir__handle *handle)
{
    char *plugin = strchr(text, '=');

    if (plugin == NULL) {
        weir__complain("--handle: \"%s\" has no =; write TOPIC=PLUGIN", text);
        return false;
    }
    if (plugin[1] == '\0' || plugin[1] == '?') {
        weir__complain("--handle: \"%s\" names no plugin; write TOPIC=PLUGIN",
                       text);
        return false;
    }
    *plugin++ = '\0';
    handle->topic = text;
    return weir__operand_topic(text) && parse_plugin(plugin, handle);
}

static bool parse(const char *text, bool (*fn)(char *, struct weir__handle *),
                  struct weir__handle *ret_handle)
{
    struct weir__handle handle = {0};
    size_t len = strlen(text);

    handle.text = weir__mem_new(len + 1);
    if (handle.text == NULL) {
        weir__complain("out of memory");
        return false;
    }
    memcpy(handle.text, text, len + 1);
    if (!fn(handle.text, &handle)) {
        weir__handle_fini(&handle);
        return false;
    }
    *ret_handle = handle;
    return true;
}

bool weir__handle_parse(const char *text, struct weir__handle *ret_handle)
{
    return parse(text, parse_handle, ret_handle);
}

bool weir__handle_parse_plugin(const char *text,
                               struct weir__handle *ret_handle)
{
    return parse(text, parse_plugin, ret_handle);
}

void weir__handle_fini(struct weir__handle *handle)
{
    weir__mem_free(handle->options);
    weir__mem_free(handle->text);
    *handle = (struct weir__handle){0};
}
